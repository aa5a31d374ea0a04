package harness

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Kind is a kind that an operator serves.
type Kind struct{ schema.GroupVersionKind }

// The installed kinds of this repository.
var (
	PodSet   = Kind{schema.GroupVersionKind{Group: "app.example.com", Version: "v1alpha1", Kind: "PodSet"}}
	OvhNginx = Kind{schema.GroupVersionKind{Group: "tutorials.ovhcloud.com", Version: "v1", Kind: "OvhNginx"}}
)

func installed() []Kind { return []Kind{PodSet, OvhNginx} }

// plural returns the kind's name in API paths.
func plural(kind string) string {
	lower := strings.ToLower(kind)
	if stem, ok := strings.CutSuffix(lower, "y"); ok {
		return stem + "ies"
	}
	if strings.HasSuffix(lower, "s") || strings.HasSuffix(lower, "x") {
		return lower + "es"
	}
	return lower + "s"
}

func resource(gvk schema.GroupVersionKind) schema.GroupVersionResource {
	return gvk.GroupVersion().WithResource(plural(gvk.Kind))
}

// Resource returns the kind in the form that kubectl accepts.
func (k Kind) Resource() string { return plural(k.Kind) + "." + k.Group }

// NewKind returns a kind for this test only, in an API group that no other test
// uses. Its CRD accepts any spec; see InstallCRD.
func (e *Env) NewKind(name string) Kind {
	kind := Kind{schema.GroupVersionKind{Group: e.Namespace + ".test", Version: "v1", Kind: name}}
	e.kinds = append(e.kinds, kind)
	return kind
}

// crd returns the kind's CRD, which leaves the validation of the spec to the
// chart's schema. It has the scope and the additional subresources of the keys.
func (k Kind) crd(keys ...Entry) *unstructured.Unstructured {
	scope, subresources := any("Namespaced"), map[string]any{"status": map[string]any{}}
	for _, key := range keys {
		scope = cmp.Or(key["scope"], scope)
		if more, ok := key["subresources"].(map[string]any); ok {
			maps.Copy(subresources, more)
		}
	}
	open := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   map[string]any{"name": k.Resource()},
		"spec": map[string]any{
			"group": k.Group,
			"scope": scope,
			"names": map[string]any{"kind": k.Kind, "plural": plural(k.Kind), "singular": strings.ToLower(k.Kind)},
			"versions": []any{map[string]any{
				"name": k.Version, "served": true, "storage": true,
				"subresources": subresources,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type":       "object",
					"properties": map[string]any{"spec": open, "status": open},
				}},
			}},
		},
	}}
}

var crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// InstallCRD installs the kind's CRD and waits until the API server serves the
// kind.
func (e *Env) InstallCRD(kind Kind) {
	e.t.Helper()
	e.createCRD(kind, kind.crd())
	e.WaitServed(kind)
}

func (e *Env) createCRD(kind Kind, definition *unstructured.Unstructured) {
	e.t.Helper()
	_, err := e.Dynamic.Resource(crds).Create(e.t.Context(), definition, metav1.CreateOptions{})
	e.must(err)
	e.cleanup(func(ctx context.Context) error {
		if err := e.release(ctx, kind); err != nil {
			return err
		}
		err := e.Dynamic.Resource(crds).Delete(ctx, kind.Resource(), metav1.DeleteOptions{})
		return client.IgnoreNotFound(err)
	})
}

// WaitServed waits until the API server serves a kind.
func (e *Env) WaitServed(kind Kind) {
	e.t.Helper()
	e.Wait("kind "+kind.Kind+" to be served", func(ctx context.Context) error {
		_, err := e.Dynamic.Resource(resource(kind.GroupVersionKind)).List(ctx, metav1.ListOptions{Limit: 1})
		return err
	})
}

// release deletes the remaining objects of a kind in the namespace and removes
// their finalizers, in this order: an operator that runs would add its finalizer
// to an object that is not being deleted.
func (e *Env) release(ctx context.Context, kind Kind) error {
	// Only metadata: a busy machine needs more than the API server's minute to answer with the
	// largest custom resources.
	client, err := metadata.NewForConfig(shared.config)
	if err != nil {
		return err
	}
	objects := client.Resource(resource(kind.GroupVersionKind)).Namespace(e.Namespace)
	left, err := objects.List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list %s: %w", kind.Kind, err)
	}
	for i := range left.Items {
		name := left.Items[i].GetName()
		err := objects.Delete(ctx, name, metav1.DeleteOptions{})
		if err == nil {
			_, err = objects.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}
