package harness

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// in returns the client for a kind in the test's namespace.
func (e *Env) in(gvk schema.GroupVersionKind) dynamic.ResourceInterface {
	return e.Dynamic.Resource(resource(gvk)).Namespace(e.Namespace)
}

// named describes an object for messages.
func named(object *unstructured.Unstructured) string {
	return object.GetKind() + " " + object.GetName()
}

// Create creates objects in the test's namespace.
func (e *Env) Create(objects ...*unstructured.Unstructured) {
	e.t.Helper()
	for _, object := range objects {
		_, err := e.in(object.GroupVersionKind()).Create(e.t.Context(), object, metav1.CreateOptions{})
		e.must(err)
	}
}

// SetSpec replaces the whole spec by that of another builder's object.
func (e *Env) SetSpec(wanted *unstructured.Unstructured) {
	e.t.Helper()
	patch, err := json.Marshal([]any{map[string]any{"op": "add", "path": "/spec", "value": wanted.Object["spec"]}})
	e.must(err)
	_, err = e.in(wanted.GroupVersionKind()).Patch(e.t.Context(), wanted.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{})
	e.must(err)
}

// Delete asks for objects to be deleted.
func (e *Env) Delete(objects ...*unstructured.Unstructured) {
	e.t.Helper()
	for _, object := range objects {
		e.must(e.in(object.GroupVersionKind()).Delete(e.t.Context(), object.GetName(), metav1.DeleteOptions{}))
	}
}

// Get reads an object.
func (e *Env) Get(like *unstructured.Unstructured) *unstructured.Unstructured {
	e.t.Helper()
	object, err := e.in(like.GroupVersionKind()).Get(e.t.Context(), like.GetName(), metav1.GetOptions{})
	e.must(err)
	return object
}

// WaitGone waits until objects are gone.
func (e *Env) WaitGone(objects ...*unstructured.Unstructured) {
	e.t.Helper()
	for _, object := range objects {
		e.Wait(named(object)+" to be gone", func(ctx context.Context) error {
			live, err := e.in(object.GroupVersionKind()).Get(ctx, object.GetName(), metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(err):
				return nil
			case err != nil:
				return err
			}
			return fmt.Errorf("it is there, with finalizers %v and status %s", live.GetFinalizers(), pretty(live.Object["status"]))
		})
	}
}

// ConfigMap names a ConfigMap, for Get and WaitGone.
func ConfigMap(name string) *unstructured.Unstructured { return object("v1", "ConfigMap", name) }

// Secret names a Secret.
func Secret(name string) *unstructured.Unstructured { return object("v1", "Secret", name) }

// Service names a Service.
func Service(name string) *unstructured.Unstructured { return object("v1", "Service", name) }

// Deployment names a Deployment.
func Deployment(name string) *unstructured.Unstructured {
	return object("apps/v1", "Deployment", name)
}

// Job names a Job.
func Job(name string) *unstructured.Unstructured { return object("batch/v1", "Job", name) }

func object(apiVersion, kind, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetName(name)
	return o
}

// pretty prints a value for messages.
func pretty(value any) string {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(data)
}
