package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// testUser is the field manager of the changes that users make.
const testUser = "test-user"

// in returns the client for a kind in the test's namespace.
func (e *Env) in(gvk schema.GroupVersionKind) dynamic.ResourceInterface {
	return e.Dynamic.Resource(resource(gvk)).Namespace(e.Namespace)
}

// At returns the client for an object: in its own namespace, in the test's
// namespace if it has none, or without a namespace for the kinds of
// clusterScoped.
func (e *Env) At(object *unstructured.Unstructured) dynamic.ResourceInterface {
	gvk := object.GroupVersionKind()
	switch {
	case slices.Contains(clusterScoped, gvk.Kind):
		return e.Dynamic.Resource(resource(gvk))
	case object.GetNamespace() != "":
		return e.Dynamic.Resource(resource(gvk)).Namespace(object.GetNamespace())
	default:
		return e.in(gvk)
	}
}

// clusterScoped are the cluster-scoped kinds that At supports.
var clusterScoped = []string{
	"ChartKind", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "Namespace",
	"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
}

// named describes an object for failure messages.
func named(object *unstructured.Unstructured) string {
	return object.GetKind() + " " + object.GetName()
}

// Create creates objects in the namespaces that At describes.
func (e *Env) Create(objects ...*unstructured.Unstructured) {
	e.t.Helper()
	for _, object := range objects {
		_, err := e.At(object).Create(e.t.Context(), object, metav1.CreateOptions{})
		e.must(err)
	}
}

// CreateText creates an object from JSON that is sent unchanged. Other than a client for
// discovery, the client sets no limit below that of the API server. It is half a minute, which a
// busy API server can need for a large object, so the request is repeated.
func (e *Env) CreateText(like *unstructured.Unstructured, text string) {
	e.t.Helper()
	gvk := like.GroupVersionKind()
	repeated := false
	e.Wait("the creation of "+like.GetName(), func(ctx context.Context) error {
		err := e.Typed.CoreV1().RESTClient().Post().
			AbsPath("/apis", gvk.Group, gvk.Version, "namespaces", e.Namespace, resource(gvk).Resource).
			SetHeader("Content-Type", "application/json").Body([]byte(text)).Do(ctx).Error()
		switch {
		case apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err):
			repeated = true
			return err
		case apierrors.IsAlreadyExists(err) && repeated:
			return nil
		}
		e.must(err)
		return nil
	})
}

// SetSpec replaces the spec of the object with that of wanted.
func (e *Env) SetSpec(wanted *unstructured.Unstructured) {
	e.t.Helper()
	patch, err := json.Marshal([]any{map[string]any{"op": "add", "path": "/spec", "value": wanted.Object["spec"]}})
	e.must(err)
	_, err = e.in(wanted.GroupVersionKind()).Patch(e.t.Context(), wanted.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{})
	e.must(err)
}

// Delete deletes objects without waiting until they are gone.
func (e *Env) Delete(objects ...*unstructured.Unstructured) {
	e.t.Helper()
	for _, object := range objects {
		e.must(e.At(object).Delete(e.t.Context(), object.GetName(), metav1.DeleteOptions{}))
	}
}

// Get reads an object.
func (e *Env) Get(like *unstructured.Unstructured) *unstructured.Unstructured {
	e.t.Helper()
	object, err := e.At(like).Get(e.t.Context(), like.GetName(), metav1.GetOptions{})
	e.must(err)
	return object
}

// WaitGone waits until objects are gone.
func (e *Env) WaitGone(objects ...*unstructured.Unstructured) {
	e.t.Helper()
	for _, object := range objects {
		e.Wait(named(object)+" to be gone", func(ctx context.Context) error {
			live, err := e.At(object).Get(ctx, object.GetName(), metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(err):
				return nil
			case err != nil:
				return err
			}
			return fmt.Errorf("it still exists, with finalizers %v and status %s", live.GetFinalizers(), pretty(live.Object["status"]))
		})
	}
}

// Patch changes an object by a JSON patch, as a user does, and returns the
// result.
func (e *Env) Patch(object *unstructured.Unstructured, patch string, subresources ...string) *unstructured.Unstructured {
	e.t.Helper()
	patched, err := e.At(object).Patch(e.t.Context(), object.GetName(), types.JSONPatchType, []byte(patch),
		metav1.PatchOptions{FieldManager: testUser}, subresources...)
	if err != nil {
		e.t.Fatalf("patch %s with %s: %v", named(object), patch, err)
	}
	return patched
}

// NewNamespace creates another namespace, see endNamespace for its end.
func (e *Env) NewNamespace(suffix string) string {
	e.t.Helper()
	namespace := Object("v1", "Namespace", e.Namespace+"-"+suffix)
	e.Create(namespace)
	e.cleanup(func(ctx context.Context) error { return e.endNamespace(ctx, namespace.GetName()) })
	return namespace.GetName()
}

// ConfigMap returns a reference to a ConfigMap, for Get and WaitGone.
func ConfigMap(name string) *unstructured.Unstructured { return Object("v1", "ConfigMap", name) }

// Secret returns a reference to a Secret.
func Secret(name string) *unstructured.Unstructured { return Object("v1", "Secret", name) }

// Service returns a reference to a Service.
func Service(name string) *unstructured.Unstructured { return Object("v1", "Service", name) }

// Deployment returns a reference to a Deployment.
func Deployment(name string) *unstructured.Unstructured {
	return Object("apps/v1", "Deployment", name)
}

// Job returns a reference to a Job.
func Job(name string) *unstructured.Unstructured { return Object("batch/v1", "Job", name) }

// Object returns a reference to an object of any kind.
func Object(apiVersion, kind, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetName(name)
	return o
}

// pretty formats a value for failure messages.
func pretty(value any) string {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(data)
}
