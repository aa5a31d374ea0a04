package apply_test

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/apply"
)

const (
	aDeployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 0, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: VALUE}]}}}}"
	aSecret     = "{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {k: VALUE}}"
	aPort       = "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 80, name: VALUE}]}}"
	anApple     = "{apiVersion: example.com/v1, kind: Apple, metadata: {name: a}, spec: {sort: VALUE, size: 3}}"
	// appleCRD validates its objects by types, a default and an expression.
	appleCRD = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: apples.example.com}, spec: {
		group: example.com, scope: Namespaced, names: {plural: apples, kind: Apple}, versions: [{name: v1, served: true, storage: true,
		subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, required: [spec], properties: {spec: {type: object, required: [sort],
		x-kubernetes-validations: [{rule: "self.size > 2"}], properties: {sort: {type: string}, size: {type: integer}, ripe: {type: boolean, default: true}}}}}}}]}}`
)

// apples returns a function that prepares a custom resource whose CRD validates it.
func apples(t *testing.T, of apply.Owner) func(value string) apply.Object {
	t.Helper()
	crd := parse(t, appleCRD)
	crds := apiServer.client.Dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	if _, err := crds.Create(t.Context(), crd, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	crdMapping, err := apiServer.mapper.RESTMapping(crd.GroupVersionKind().GroupKind(), "v1")
	if err != nil {
		t.Fatal(err)
	}
	established := func(o *unstructured.Unstructured) (bool, error) {
		status, _ := o.Object["status"].(map[string]any)
		conditions, _ := status["conditions"].([]any)
		for _, c := range conditions {
			if fields, _ := c.(map[string]any); fields["type"] == "Established" && fields["status"] == "True" {
				return true, nil
			}
		}
		return false, nil
	}
	if err := apiServer.client.Until(t.Context(), apply.Object{Unstructured: crd, Mapping: crdMapping}, established); err != nil {
		t.Fatal(err)
	}
	return func(value string) apply.Object {
		t.Helper()
		o := parse(t, strings.ReplaceAll(anApple, "VALUE", value))
		o.SetNamespace(of.Namespace)
		prepared, err := apply.Prepare(o, of, true)
		if err != nil {
			t.Fatal(err)
		}
		gvk := o.GroupVersionKind()
		return apply.Object{Unstructured: prepared, Mapping: &meta.RESTMapping{
			Resource: gvk.GroupVersion().WithResource("apples"), GroupVersionKind: gvk, Scope: meta.RESTScopeNamespace,
		}}
	}
}

// TestApply_ChangesOnlyExpectedObject proves on the API server what ownership rests on: an
// apply without a UID creates an object and never changes one, and an apply with a UID changes
// the object with this UID and never creates one.
func TestApply_ChangesOnlyExpectedObject(t *testing.T) {
	of := namespace(t)
	kinds := map[string]func(value string) apply.Object{"Apple": apples(t, of)}
	for _, text := range []string{aDeployment, aSecret, aPort, immutableMap} {
		o := object(t, of, strings.ReplaceAll(text, "VALUE", "one"))
		kinds[o.GetKind()] = func(value string) apply.Object { return object(t, of, strings.ReplaceAll(text, "VALUE", value)) }
	}
	for kind, with := range kinds {
		t.Run(kind, func(t *testing.T) {
			client := apiServer.client
			expect := func(what string, o apply.Object, options apply.Options, want error) *metav1.PartialObjectMetadata {
				t.Helper()
				before, err := client.Get(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				applied, err := client.Apply(t.Context(), o, options)
				if !errors.Is(err, want) || want == nil && err != nil {
					t.Errorf("%s: got error %v, want %v", what, err, want)
				}
				after, err := client.Get(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				if want != nil && (before == nil) != (after == nil) || want != nil && after != nil && before.ResourceVersion != after.ResourceVersion {
					t.Errorf("%s: the rejected apply has changed the object", what)
				}
				return applied
			}
			expect("with the UID of an object that never existed", with("one"), apply.Options{UID: "6f0ea1de-0000-4000-8000-000000000000"}, apply.ErrReplaced)
			expect("a dry run of a creation", with("one"), apply.Options{DryRun: true}, nil)
			created := expect("without a UID, absent", with("one"), apply.Options{}, nil)
			if created == nil || !apply.Owns(created, of) || !apply.StateOf(with("one").GroupVersionKind().GroupKind(), created).Managed {
				t.Fatalf("the created object has no Apply entry: %+v", created)
			}
			expect("without a UID, the same content", with("one"), apply.Options{}, apply.ErrReplaced)
			expect("without a UID, other content", with("two"), apply.Options{}, apply.ErrReplaced)
			expect("with its UID", with("one"), apply.Options{UID: created.UID}, nil)
			if kind != "ConfigMap" {
				if changed := expect("with its UID, other content", with("two"), apply.Options{UID: created.UID}, nil); changed != nil && changed.UID != created.UID {
					t.Error("the apply has replaced the object")
				}
			}
			if err := client.DeleteUID(t.Context(), with("one"), created.UID, metav1.DeletePropagationBackground); err != nil {
				t.Fatal(err)
			}
			if err := client.WaitGone(t.Context(), with("one"), created.UID); err != nil {
				t.Fatal(err)
			}
			expect("with the UID of a deleted object", with("one"), apply.Options{UID: created.UID}, apply.ErrReplaced)
			foreign := with("three")
			foreign.SetLabels(nil)
			foreign.SetAnnotations(nil)
			if _, err := client.Dynamic.Resource(foreign.Mapping.Resource).Namespace(of.Namespace).Create(t.Context(), foreign.Unstructured, metav1.CreateOptions{FieldManager: "kubectl"}); err != nil {
				t.Fatal(err)
			}
			expect("with the UID of an earlier object of that name", with("one"), apply.Options{UID: created.UID}, apply.ErrReplaced)
			expect("without a UID, over an object of another client", with("one"), apply.Options{}, apply.ErrReplaced)
			if _, err := client.HandOver(t.Context(), with("one"), [][]string{{"metadata", "labels"}}, apply.Options{UID: created.UID}); !errors.Is(err, apply.ErrReplaced) {
				t.Errorf("HandOver with the UID of an earlier object: %v", err)
			}
			if _, err := client.HandOver(t.Context(), with("one"), [][]string{{"metadata", "labels"}}, apply.Options{}); !errors.Is(err, apply.ErrReplaced) {
				t.Errorf("HandOver without a UID, over an object of another client: %v", err)
			}
			live, err := client.Get(t.Context(), foreign)
			if err != nil || live.Labels != nil || len(live.ManagedFields) != 1 {
				t.Errorf("the object of the other client was changed: %+v, %v", live, err)
			}
			if live != nil {
				if err := client.DeleteUID(t.Context(), foreign, live.UID, metav1.DeletePropagationBackground); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestApply_TakesNoFieldsOfReplacedObject covers the corrections of a rejected apply, which
// read the live object and change its managed fields.
func TestApply_TakesNoFieldsOfReplacedObject(t *testing.T) {
	of := namespace(t)
	with := func(value string) apply.Object {
		return object(t, of, strings.ReplaceAll(immutableMap, "VALUE", value))
	}
	create(t, with("one"), "kubectl-client-side-apply")
	earlier := get(t, with("one"))
	if err := apiServer.client.DeleteUID(t.Context(), with("one"), earlier.UID, metav1.DeletePropagationBackground); err != nil {
		t.Fatal(err)
	}
	create(t, with("two"), "kubectl-client-side-apply")
	foreign := live(t, with("two"))
	_, err := apiServer.client.TakeOverFields(t.Context(), with("one"), earlier, []string{"kubectl-client-side-apply"})
	if !errors.Is(err, apply.ErrReplaced) {
		t.Errorf("TakeOverFields: got error %v, want ErrReplaced", err)
	}
	if now := live(t, with("one")); now.GetResourceVersion() != foreign.GetResourceVersion() {
		t.Error("the object of another client was changed")
	}
}
