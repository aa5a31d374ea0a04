package e2e

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// driftCase is a change by others to an object of a release. Its targets are all objects that it fits; a ConfigMap has no replicas, for example.
type driftCase struct {
	name    string
	targets []string
	// do returns the UID of the object that remains, or "".
	do func(env *harness.Env, o *unstructured.Unstructured, target string) types.UID
}

// patches are the JSON patches of the cases that differ between kinds.
type patches map[string]string

var (
	changed = patches{
		"Deployment":     `{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "registry.example/other"}`,
		"StatefulSet":    `{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "registry.example/other"}`,
		"Service":        `{"op": "replace", "path": "/spec/ports/0/targetPort", "value": 9}`,
		"ConfigMap":      `{"op": "replace", "path": "/data/word", "value": "other"}`,
		"Secret":         `{"op": "replace", "path": "/data/word", "value": "b3RoZXI="}`,
		"ServiceAccount": `{"op": "replace", "path": "/automountServiceAccountToken", "value": true}`,
		"Role":           `{"op": "replace", "path": "/rules/0/verbs", "value": ["get", "list"]}`,
		"ClusterRole":    `{"op": "replace", "path": "/rules/0/verbs", "value": ["get", "list"]}`,
		"Widget":         `{"op": "replace", "path": "/spec/word", "value": "other"}`,
		"elsewhere":      `{"op": "replace", "path": "/data/word", "value": "other"}`,
		"kept":           `{"op": "replace", "path": "/data/word", "value": "other"}`,
	}
	fieldRemoved = patches{
		"Deployment":     `{"op": "remove", "path": "/spec/template/spec/terminationGracePeriodSeconds"}`,
		"StatefulSet":    `{"op": "remove", "path": "/spec/template/spec/terminationGracePeriodSeconds"}`,
		"Service":        `{"op": "remove", "path": "/spec/internalTrafficPolicy"}`,
		"ConfigMap":      `{"op": "remove", "path": "/data/shape"}`,
		"Secret":         `{"op": "remove", "path": "/data/shape"}`,
		"ServiceAccount": `{"op": "remove", "path": "/automountServiceAccountToken"}`,
		"Role":           `{"op": "remove", "path": "/rules/0/resourceNames"}`,
		"ClusterRole":    `{"op": "remove", "path": "/rules/0/resourceNames"}`,
		"Widget":         `{"op": "remove", "path": "/spec/shape"}`,
		"elsewhere":      `{"op": "remove", "path": "/data"}`,
		"kept":           `{"op": "remove", "path": "/data/shape"}`,
	}
	itemRemoved = patches{
		"Deployment":     `{"op": "remove", "path": "/spec/template/spec/containers/0/env/0"}`,
		"StatefulSet":    `{"op": "remove", "path": "/spec/template/spec/containers/0/env/0"}`,
		"Service":        `{"op": "remove", "path": "/spec/ports/0"}`,
		"ServiceAccount": `{"op": "remove", "path": "/imagePullSecrets/0"}`,
		"Role":           `{"op": "remove", "path": "/rules/0"}`,
		"ClusterRole":    `{"op": "remove", "path": "/rules/0"}`,
		"Widget":         `{"op": "remove", "path": "/spec/items/0"}`,
	}
)

func (c patches) do(env *harness.Env, o *unstructured.Unstructured, target string) types.UID {
	return env.Patch(o, "["+c[target]+"]").GetUID()
}

// patchAll returns the change for one JSON patch that fits every object.
func patchAll(patch string) func(*harness.Env, *unstructured.Unstructured, string) types.UID {
	return func(env *harness.Env, o *unstructured.Unstructured, _ string) types.UID {
		return env.Patch(o, "["+patch+"]").GetUID()
	}
}

func driftCases() []driftCase {
	every := sortedKeys(changed)
	return []driftCase{
		{name: "deleted", targets: every, do: func(env *harness.Env, o *unstructured.Unstructured, _ string) types.UID {
			env.Delete(o)
			return ""
		}},
		{name: "field changed", targets: every, do: changed.do},
		{name: "field removed", targets: every, do: fieldRemoved.do},
		{name: "item removed", targets: sortedKeys(itemRemoved), do: itemRemoved.do},
		{name: "label removed", targets: every, do: patchAll(`{"op": "remove", "path": "/metadata/labels/example.com~1team"}`)},
		{name: "annotation removed", targets: every, do: patchAll(`{"op": "remove", "path": "/metadata/annotations/example.com~1note"}`)},
		{name: "owner label removed", targets: every, do: patchAll(`{"op": "remove", "path": "/metadata/labels/chartwright.dev~1owner-uid"}`)},
		{name: "operator label removed", targets: every, do: patchAll(`{"op": "remove", "path": "/metadata/labels/chartwright.dev~1operator"}`)},
		{name: "managed fields wiped", targets: every, do: patchAll(`{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}`)},
		{name: "scaled", targets: []string{"Deployment", "StatefulSet"}, do: func(env *harness.Env, o *unstructured.Unstructured, _ string) types.UID {
			env.Kubectl("scale", strings.ToLower(o.GetKind()), o.GetName(), "--replicas=1")
			return o.GetUID()
		}},
		// The key of a list item that the operator applied: an apply would keep
		// both items.
		{name: "list key changed", targets: []string{"Service"}, do: patchAll(`{"op": "replace", "path": "/spec/ports/0/port", "value": 8000}`)},
	}
}

// replaceByAnother deletes an object and creates one with another value. Of the
// labels and annotations it only keeps those that Helm needs to recognize objects of a release.
func replaceByAnother(env *harness.Env, o *unstructured.Unstructured, target string) types.UID {
	env.T().Helper()
	bare := &unstructured.Unstructured{Object: manifest(o)}
	bare.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "Helm"})
	bare.SetAnnotations(map[string]string{
		"meta.helm.sh/release-name":      o.GetAnnotations()["meta.helm.sh/release-name"],
		"meta.helm.sh/release-namespace": o.GetAnnotations()["meta.helm.sh/release-namespace"],
	})
	bare.SetOwnerReferences(nil)
	env.Delete(o)
	env.WaitGone(o)
	if _, err := env.At(bare).Create(env.T().Context(), bare, metav1.CreateOptions{FieldManager: "kubectl-create"}); err != nil {
		env.T().Fatal(err)
	}
	return changed.do(env, o, target)
}

// Every case is tested with all its targets, in one release
// for each case, because repeated drift of an object is corrected with backoff.
func TestDrift_IsCorrected(t *testing.T) {
	t.Parallel()
	e := useEverything(t)
	table := driftCases()
	crs := make([]*unstructured.Unstructured, len(table))
	for i, test := range table {
		crs[i] = e.cr(strings.ReplaceAll(test.name, " ", "-")).Obj()
	}
	e.Create(crs...)
	e.WaitReady(crs...)
	for i, test := range table {
		t.Run(test.name, func(t *testing.T) {
			e := everything{e.For(t), e.kind, e.widget, e.elsewhere}
			objects := e.settled(crs[i].GetName())
			// The objects that must be corrected in place, by UID.
			left := map[string]types.UID{}
			for target, object := range objects {
				left[target] = object.GetUID()
			}
			for _, target := range test.targets {
				left[target] = test.do(e.Env, objects[target], target)
			}
			e.waitCorrected(crs[i], objects, left)
		})
	}
	e.remove(crs...)
	for _, cr := range crs {
		for name, object := range e.dependents(cr.GetName()) {
			if name == "kept" {
				e.Get(object)
			} else {
				e.WaitGone(object)
			}
		}
	}
}

// waitCorrected waits until the drift of a release is corrected. The objects with
// a UID in left must still exist.
func (e everything) waitCorrected(cr *unstructured.Unstructured, objects map[string]*unstructured.Unstructured, left map[string]types.UID) {
	e.T().Helper()
	for _, target := range sortedKeys(objects) {
		waitCorrected(e.Env, objects[target])
		if is, was := e.Get(objects[target]).GetUID(), left[target]; was != "" && is != was {
			e.T().Errorf("%s was replaced: %s became %s", target, was, is)
		}
	}
	e.WaitEvent(cr, "DriftCorrected")
	e.WaitReady(cr)
	e.ExpectRevisions(cr.GetName(), "1 deployed")
	e.WaitStatus(cr, "without drift", func(status api.Status) error {
		if drifted := harness.Condition(status, "Drifted"); drifted != nil {
			return fmt.Errorf("drifted: %+v", drifted)
		}
		return nil
	})
}

// A user deletes an object and creates another before the operator can recreate it.
func TestDrift_ObjectReplacedByUser(t *testing.T) {
	t.Parallel()
	e, operator := serveEverything(t)
	web, api := e.cr("web").Obj(), e.cr("api").Obj()
	e.Create(web, api)
	e.WaitReady(web, api)
	objects := e.settled("web")
	replaced := map[string]types.UID{}
	unowned := harness.ConfigMap("api")
	unowned.Object["data"] = map[string]any{"word": "not owned"}
	if err := operator.WhileFrozen(func() {
		for target, object := range objects {
			replaced[target] = replaceByAnother(e.Env, object, target)
		}
		e.Delete(unowned)
		e.Create(unowned)
	}); err != nil {
		t.Fatal(err)
	}
	foreign := e.Get(unowned)

	// The new objects have the labels and annotations of the release.
	e.waitCorrected(web, objects, replaced)

	// The new object has none; only the release record names it.
	event := e.WaitEvent(api, "RepairFailed")
	if want := "ConfigMap " + e.Namespace + "/api: the object is not owned by this release"; !strings.Contains(event.Note, want) {
		t.Errorf("the note of event RepairFailed is %q, want %q", event.Note, want)
	}
	if after := e.Get(unowned); after.GetUID() != foreign.GetUID() || after.GetResourceVersion() != foreign.GetResourceVersion() {
		t.Error("the object was changed")
	}
	e.Delete(unowned)
	waitData(e.Env, "api", "word", "one")
	e.WaitReady(api)
	e.remove(web, api)
}

func TestDrift_EventNamesCorrectedFields(t *testing.T) {
	t.Parallel()
	e := useEverything(t)
	web := e.cr("web").Obj()
	e.Create(web)
	e.WaitReady(web)
	e.Patch(harness.ConfigMap("web"), "["+changed["ConfigMap"]+"]")
	event := e.WaitEvent(web, "DriftCorrected")
	if want := "Corrected ConfigMap " + e.Namespace + "/web: data.word"; event.Type != "Normal" || event.Note != want {
		t.Errorf("event is %+v, want %q", event, want)
	}
	e.remove(web)
}
