package apply_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/chartwright/chartwright/internal/apply"
)

const pearCRD = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: pears.served.example.com}, spec: {
	group: served.example.com, scope: Namespaced, names: {plural: pears, kind: Pear}, versions: [
	{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}},
	{name: v1beta1, served: false, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`

// pearIn returns the resource of a kind in a version.
func pearIn(version string) *meta.RESTMapping {
	gv := schema.GroupVersion{Group: "served.example.com", Version: version}
	return &meta.RESTMapping{Resource: gv.WithResource("pears"), GroupVersionKind: gv.WithKind("Pear"), Scope: meta.RESTScopeNamespace}
}

// createPears creates a kind and serves only its version v1.
func createPears(t *testing.T) {
	t.Helper()
	crds := apiServer.client.Dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	if _, err := crds.Create(t.Context(), parse(t, pearCRD), metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	pears := apiServer.client.Dynamic.Resource(pearIn("v1").Resource)
	if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := pears.List(ctx, metav1.ListOptions{})
		return err == nil, nil
	}); err != nil {
		t.Fatal(err)
	}
}

// namingRequests are the methods that name an object and send none of its fields. The object
// exists. Each reports whether the method has reached the live object.
var namingRequests = map[string]func(context.Context, apply.Client, apply.Object, *unstructured.Unstructured) (reached func(after *unstructured.Unstructured) bool, err error){
	"Get": func(ctx context.Context, c apply.Client, o apply.Object, _ *unstructured.Unstructured) (func(*unstructured.Unstructured) bool, error) {
		live, err := c.Get(ctx, o)
		return func(*unstructured.Unstructured) bool { return live != nil }, err
	},
	"Read": func(ctx context.Context, c apply.Client, o apply.Object, _ *unstructured.Unstructured) (func(*unstructured.Unstructured) bool, error) {
		live, err := c.Read(ctx, o)
		return func(*unstructured.Unstructured) bool { return live != nil }, err
	},
	"DeleteUID": func(ctx context.Context, c apply.Client, o apply.Object, live *unstructured.Unstructured) (func(*unstructured.Unstructured) bool, error) {
		err := c.DeleteUID(ctx, o, live.GetUID(), metav1.DeletePropagationBackground)
		return func(after *unstructured.Unstructured) bool { return after == nil }, err
	},
	"RemoveOwnerReference": func(ctx context.Context, c apply.Client, o apply.Object, _ *unstructured.Unstructured) (func(*unstructured.Unstructured) bool, error) {
		err := c.RemoveOwnerReference(ctx, o, owner.UID)
		return func(after *unstructured.Unstructured) bool { return len(after.GetOwnerReferences()) == 0 }, err
	},
	"TakeOverFields": func(ctx context.Context, c apply.Client, o apply.Object, live *unstructured.Unstructured) (func(*unstructured.Unstructured) bool, error) {
		read := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			UID: live.GetUID(), ResourceVersion: live.GetResourceVersion(), ManagedFields: live.GetManagedFields(),
		}}
		_, err := c.TakeOverFields(ctx, o, read, []string{"helm"})
		return func(after *unstructured.Unstructured) bool {
			return !slices.ContainsFunc(after.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == "helm" })
		}, err
	},
}

// TestClient_FindsServedVersion: the version of an object is no longer served. Requests that
// name the object reach it in the version that is served.
func TestClient_FindsServedVersion(t *testing.T) {
	of := namespace(t)
	createPears(t)
	pears := apiServer.client.Dynamic.Resource(pearIn("v1").Resource).Namespace(of.Namespace)
	for _, name := range slices.Sorted(maps.Keys(namingRequests)) {
		pear := parse(t, "{apiVersion: served.example.com/v1, kind: Pear, metadata: {name: a}, spec: {size: 3}}")
		pear.SetOwnerReferences([]metav1.OwnerReference{owner.Reference()})
		live, err := pears.Create(t.Context(), pear, metav1.CreateOptions{FieldManager: "helm"})
		if err != nil {
			t.Fatal(err)
		}
		o := apply.Object{Unstructured: parse(t, "{apiVersion: served.example.com/v1beta1, kind: Pear, metadata: {name: a}}"), Mapping: pearIn("v1beta1")}
		o.SetNamespace(of.Namespace)
		for _, test := range []struct {
			name   string
			served func(schema.GroupKind) (*meta.RESTMapping, error)
			want   error
		}{
			{"the lookup fails", func(schema.GroupKind) (*meta.RESTMapping, error) {
				return nil, apierrors.NewServiceUnavailable("unavailable")
			}, errUnavailable},
			{"the version is listed still", func(schema.GroupKind) (*meta.RESTMapping, error) { return pearIn("v1beta1"), nil }, errUnserved},
			{"no version is served", func(gk schema.GroupKind) (*meta.RESTMapping, error) {
				return nil, &meta.NoKindMatchError{GroupKind: gk}
			}, errAbsent},
			{"another version is served", func(schema.GroupKind) (*meta.RESTMapping, error) { return pearIn("v1"), nil }, nil},
		} {
			client := apiServer.client
			client.Served = test.served
			reached, err := namingRequests[name](t.Context(), client, o, live)
			after, readErr := pears.Get(t.Context(), "a", metav1.GetOptions{})
			if apierrors.IsNotFound(readErr) {
				after, readErr = nil, nil
			}
			if readErr != nil {
				t.Fatal(readErr)
			}
			var got error
			switch {
			case apply.Retryable(err):
				got = errUnavailable
			case apply.AnswerOf(err) == apply.Unserved:
				got = errUnserved
			case err == nil && !reached(after):
				got = errAbsent
			case err != nil:
				got = err
			}
			if !errors.Is(got, test.want) {
				t.Errorf("%s, %s: the result is %q (%v), want %v", name, test.name, got, err, test.want)
			}
		}
		if err := pears.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
}

// Results of requests.
var (
	errUnavailable = errors.New("retryable")
	errUnserved    = errors.New("unserved")
	errAbsent      = errors.New("counts as absent")
)

// TestApply_NeverChangesVersion: the content of an object is not applied in another version
// than its own. The error names the version.
func TestApply_NeverChangesVersion(t *testing.T) {
	of := namespace(t)
	createPears(t)
	client := apiServer.client
	client.Served = func(schema.GroupKind) (*meta.RESTMapping, error) { return pearIn("v1"), nil }
	o := apply.Object{Unstructured: parse(t, "{apiVersion: served.example.com/v1beta1, kind: Pear, metadata: {name: a}}"), Mapping: pearIn("v1beta1")}
	o.SetNamespace(of.Namespace)
	for _, dryRun := range []bool{true, false} {
		_, err := client.Apply(t.Context(), o, apply.Options{DryRun: dryRun})
		if missing, ok := errors.AsType[*meta.NoKindMatchError](err); !ok || !slices.Equal(missing.SearchedVersions, []string{"v1beta1"}) {
			t.Errorf("the error is %v, want one that names v1beta1", err)
		}
	}
}
