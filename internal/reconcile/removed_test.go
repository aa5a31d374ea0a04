package reconcile

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/reconcile/status"
	"github.com/chartwright/chartwright/internal/watches"
)

// listed is a cache that also lists the custom resource.
type listed struct{ *memoryAPI }

func (l listed) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	list.(*unstructured.UnstructuredList).Items = []unstructured.Unstructured{*l.cr.DeepCopy()}
	return nil
}

// TestReconcile_RemovedKind: only deletions are carried out. Without a chart, that is only
// so for custom resources with a release of this operator.
func TestReconcile_RemovedKind(t *testing.T) {
	for _, test := range []struct {
		name      string
		arrange   func(*world)
		called    string
		remaining int
	}{
		{"exists", func(w *world) { w.stored(1, api.StatusDeployed, label(api.LabelInputDigest, "older")) }, "", 1},
		{"exists, never reconciled", func(w *world) { w.apiServer.cr.SetFinalizers(nil) }, "", 0},
		{"deleted", func(w *world) { w.stored(1, api.StatusDeployed); w.deleted() }, "Uninstall", 1},
		{"exists, without chart", func(w *world) { w.stored(1, api.StatusDeployed); w.Kind.Chart = nil }, "", 1},
		{"deleted, without chart", func(w *world) { w.stored(1, api.StatusDeployed); w.deleted(); w.Kind.Chart = nil }, "Uninstall", 1},
		{"deleted, without chart, of another operator", func(w *world) {
			w.stored(1, api.StatusDeployed, label(api.LabelOperator, "other"))
			w.deleted()
			w.Kind.Chart = nil
		}, "", 0},
		{"deleted, without chart and release", func(w *world) { w.deleted(); w.Kind.Chart = nil }, "", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			w.Reader, w.DeletionOnly = listed{w.apiServer}, true
			test.arrange(w)
			free := w.running(types.NamespacedName{Namespace: "other", Name: "other"}, "other")
			w.reconcile()
			remaining, err := w.Remaining(t.Context())
			if err != nil || remaining != test.remaining {
				t.Errorf("%d custom resources remain, want %d: %v", remaining, test.remaining, err)
			}
			if test.called != "" {
				// The uninstall deletes the records.
				for _, record := range w.Index.History(webKey.Namespace, webKey.Name) {
					w.Index.Remove(record)
				}
			}
			free()
			w.settled()
			if called := w.actions.called(); called != test.called {
				t.Errorf("called %q, want %q", called, test.called)
			}
			if test.called == "" && w.ready() != "" {
				t.Errorf("condition Ready is %q", w.ready())
			}
			if test.called == "" {
				return
			}
			// The records are gone, and the finalizer has to go, too.
			w.reconcile()
			if remaining, _ := w.Remaining(t.Context()); remaining != 0 || len(w.apiServer.cr.GetFinalizers()) > 0 {
				t.Errorf("%d custom resources remain, finalizers %v", remaining, w.apiServer.cr.GetFinalizers())
			}
		})
	}
}

// TestReconcile_BrokenKind: the custom resource says why its kind is not served, once, and keeps
// the rest of its status.
func TestReconcile_BrokenKind(t *testing.T) {
	w := newWorld(t)
	w.stored(1, api.StatusDeployed)
	w.reconcile()
	w.settled()
	before := status.Read(w.apiServer.cr)
	w.Kind.Chart, w.DeletionOnly, w.Broken, w.Reader = nil, true, "watches.yaml:3: unknown key", listed{w.apiServer}
	w.reconcile()
	after := status.Read(w.apiServer.cr)
	for kind, want := range map[string]metav1.ConditionStatus{api.ConditionReady: metav1.ConditionFalse, api.ConditionStalled: metav1.ConditionTrue} {
		c := meta.FindStatusCondition(after.Conditions, kind)
		if c == nil || c.Status != want || c.Reason != api.ReasonKindBroken || !strings.Contains(c.Message, "unknown key") {
			t.Errorf("condition %s is %+v", kind, c)
		}
	}
	before.Conditions, before.State, before.ObservedGeneration = after.Conditions, after.State, after.ObservedGeneration
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the rest of the status (-want +got):\n%s", diff)
	}
	version := w.apiServer.version
	w.reconcile()
	if w.apiServer.version != version {
		t.Error("the same status was written again")
	}
}

// TestReconcile_RemovedKindWithoutRecords: Helm has deleted the records, but the finalizer
// remains, for example because an object outlasted the uninstall.
func TestReconcile_RemovedKindWithoutRecords(t *testing.T) {
	object := apply.State{
		Key: apply.Key{Kind: "ConfigMap", Namespace: webKey.Namespace, Name: "web"},
		UID: "object", ResourceVersion: "5", Owner: ownUID, Managed: true,
	}
	for name, test := range map[string]struct {
		arrange func(*world)
		want    bool
	}{
		"nothing left":                      {func(*world) {}, false},
		"reconciled by this process":        {func(w *world) { w.keys.put(ownUID, webKey) }, true},
		"an object left":                    {func(w *world) { w.Inventory.Put(object) }, true},
		"an object left, without finalizer": {func(w *world) { w.Inventory.Put(object); w.apiServer.cr.SetFinalizers(nil) }, false},
		"an object left, release of another operator": {func(w *world) {
			w.Inventory.Put(object)
			w.stored(1, api.StatusDeployed, label(api.LabelOperator, "other"))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.deleted()
			w.Kind.Chart, w.DeletionOnly, w.Reader = nil, true, listed{w.apiServer}
			test.arrange(w)
			if got := w.serves(w.apiServer.cr); got != test.want {
				t.Errorf("serves the deletion: %v, want %v", got, test.want)
			}
			if remaining, err := w.Remaining(t.Context()); err != nil || remaining > 0 != test.want {
				t.Errorf("%d custom resources remain: %v", remaining, err)
			}
		})
	}
}

// TestReconcile_ReplacedKind: an action that has not begun when the kind is replaced is
// dropped, because it would install the old chart.
func TestReconcile_ReplacedKind(t *testing.T) {
	w := newWorld(t)
	replaced, replace := context.WithCancel(t.Context())
	w.Until = replaced
	w.running(types.NamespacedName{Namespace: "other", Name: "other"}, "other")
	w.reconcile()
	if running := w.Pool.Running(webKey, ownUID); running == nil || !running.Queued {
		t.Fatalf("the install is not queued: %+v", running)
	}
	replace()
	w.settled()
	if called := w.actions.called(); called != "" {
		t.Errorf("called %q", called)
	}
}

// TestRequest_HookObjectsOfUnknownAccount: the operator's own account deletes no objects
// that hooks created with another account.
func TestRequest_HookObjectsOfUnknownAccount(t *testing.T) {
	kinds, err := catalog.FromText("watches.yaml",
		[]byte(`[{group: example.com, version: v1, kind: Web, chart: web, serviceAccountName: "{{ .spec.account.name }}"}]`),
		func(string) (*chart.Chart, error) { return newWorld(t).Kind.Chart, nil })
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		arrange func(*world)
		deletes bool
	}{
		"known account":                   {func(*world) {}, true},
		"without chart":                   {func(w *world) { w.Kind.Chart = nil }, false},
		"template of the account fails":   {func(w *world) { w.Kind.ServiceAccount = kinds[0].ServiceAccount }, false},
		"kept by the entry, with account": {func(w *world) { w.Kind.Uninstall.HookObjects = watches.HookObjectsKeep }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.deleted()
			test.arrange(w)
			v, err := w.observe(t.Context(), webKey, w.apiServer.cr)
			if err != nil {
				t.Fatal(err)
			}
			got := w.request(v, plan.Decision{Step: plan.StepUninstall}, nil).Uninstall.DeletesHookObjects()
			if got != test.deletes {
				t.Errorf("deletes objects of hooks: %v, want %v", got, test.deletes)
			}
		})
	}
}
