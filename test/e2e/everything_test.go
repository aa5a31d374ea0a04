package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// everything is a kind with the chart "everything", with objects of all kinds, in
// another namespace and without a namespace.
type everything struct {
	*harness.Env
	kind, widget harness.Kind
	elsewhere    string
}

// useEverything returns the kind that tests share.
func useEverything(t *testing.T) everything {
	t.Helper()
	env := harness.New(t)
	return everything{Env: env, kind: env.Use(everythingKind), widget: everythingWidget, elsewhere: env.NewNamespace("elsewhere")}
}

// serveEverything starts an operator for a kind of this test.
func serveEverything(t *testing.T) (everything, *harness.Operator) {
	t.Helper()
	e, entry := prepareEverything(t)
	return e, e.NewOperator(harness.Options{Watches: e.Watches(entry), AllNamespaces: true}).Start()
}

// prepareEverything returns a kind of this test, and its entry.
func prepareEverything(t *testing.T) (everything, harness.Entry) {
	t.Helper()
	env := harness.New(t)
	e := everything{Env: env, kind: env.NewKind("Everything"), widget: env.NewKind("Widget"), elsewhere: env.NewNamespace("elsewhere")}
	env.InstallCRD(e.kind)
	env.InstallCRD(e.widget)
	entry := harness.MakeEntry(e.kind, harness.Chart("everything"))
	maps.Copy(entry, ofWidgets(e.widget))
	return e, entry
}

// ofWidgets returns the additional keys of an entry for the chart "everything".
func ofWidgets(widget harness.Kind) harness.Entry {
	return harness.Entry{
		"allow": map[string]any{
			"otherNamespaces": true, "clusterScoped": []string{"ClusterRole.rbac.authorization.k8s.io"},
		},
		// The values define the widget's group.
		"rbac": []any{map[string]any{"apiGroups": []string{widget.Group}, "resources": []string{"widgets"}, "template": "templates/data.yaml"}},
		// No controller writes the status of widgets.
		"health": []any{map[string]any{"apiVersion": widget.GroupVersion().String(), "kind": "Widget", "ready": "true"}},
	}
}

// cr returns a builder for a custom resource whose release has all objects.
func (e everything) cr(name string) harness.CR {
	return harness.MakeCR(e.kind, name).Set("elsewhere", e.elsewhere).Set("cluster", true).
		Set("widget", e.widget.GroupVersion().String())
}

// dependents returns the objects of a release by the names that tests use.
func (e everything) dependents(release string) map[string]*unstructured.Unstructured {
	elsewhere := harness.ConfigMap(release)
	elsewhere.SetNamespace(e.elsewhere)
	const rbac = "rbac.authorization.k8s.io/v1"
	return map[string]*unstructured.Unstructured{
		"Deployment":     harness.Deployment(release),
		"StatefulSet":    harness.Object("apps/v1", "StatefulSet", release),
		"Service":        harness.Service(release),
		"ConfigMap":      harness.ConfigMap(release),
		"Secret":         harness.Secret(release),
		"ServiceAccount": harness.Object("v1", "ServiceAccount", release),
		"Role":           harness.Object(rbac, "Role", release),
		"ClusterRole":    harness.Object(rbac, "ClusterRole", e.Namespace+"-"+release),
		"Widget":         harness.Object(e.widget.GroupVersion().String(), "Widget", release),
		"elsewhere":      elsewhere,
		"kept":           harness.ConfigMap(release + "-kept"),
	}
}

// remove deletes custom resources and waits until they are gone.
func (e everything) remove(crs ...*unstructured.Unstructured) {
	e.T().Helper()
	e.Delete(crs...)
	e.WaitGone(crs...)
}

// settled returns the objects of a release after the cluster's controllers have
// updated them.
func (e everything) settled(release string) map[string]*unstructured.Unstructured {
	e.T().Helper()
	objects := e.dependents(release)
	for name, object := range objects {
		e.Wait(name+" to settle", func(ctx context.Context) error {
			live, err := e.At(object).Get(ctx, object.GetName(), metav1.GetOptions{})
			if err != nil {
				return err
			}
			objects[name] = live
			observed, found, _ := unstructured.NestedInt64(live.Object, "status", "observedGeneration")
			if live.GroupVersionKind().Group == "apps" && (!found || observed != live.GetGeneration()) {
				return fmt.Errorf("status is %v", live.Object["status"])
			}
			return nil
		})
	}
	return objects
}

// versions returns the resource versions of objects.
func versions(objects map[string]*unstructured.Unstructured) map[string]string {
	found := map[string]string{}
	for name, object := range objects {
		found[name] = object.GetResourceVersion()
	}
	return found
}

// manifest returns the fields of an object that a chart can set.
func manifest(object *unstructured.Unstructured) map[string]any {
	o := object.DeepCopy()
	for _, field := range []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "uid"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(o.Object, "status")
	unstructured.RemoveNestedField(o.Object, "spec", "clusterIP")
	unstructured.RemoveNestedField(o.Object, "spec", "clusterIPs")
	unstructured.RemoveNestedField(o.Object, "metadata", "annotations", "deployment.kubernetes.io/revision")
	return o.Object
}

// applied reports whether the operator manages fields of an object.
func applied(object *unstructured.Unstructured) bool {
	for _, entry := range object.GetManagedFields() {
		if entry.Manager == "chartwright" && entry.Operation == metav1.ManagedFieldsOperationApply {
			return true
		}
	}
	return false
}

// waitCorrected waits until an object has its old content again and the
// operator manages its fields.
func waitCorrected(env *harness.Env, was *unstructured.Unstructured) {
	env.T().Helper()
	env.Wait(was.GetKind()+" "+was.GetName()+" to be corrected", func(ctx context.Context) error {
		live, err := env.At(was).Get(ctx, was.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if diff := cmp.Diff(manifest(was), manifest(live)); diff != "" {
			return fmt.Errorf("it differs (-was +is):\n%s", diff)
		}
		if !applied(live) {
			return fmt.Errorf("the operator manages none of its fields: %v", live.GetManagedFields())
		}
		return nil
	})
}

// sortedKeys returns the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}

// condition returns a condition, which must exist.
func condition(t *testing.T, status api.Status, kind string) *metav1.Condition {
	t.Helper()
	found := harness.Condition(status, kind)
	if found == nil {
		t.Fatalf("no condition %s: %+v", kind, status.Conditions)
	}
	return found
}
