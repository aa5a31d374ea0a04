package reconcile

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/inputs/dependencies"
	"github.com/chartwright/chartwright/internal/inventory/health"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/reconcile/status"
	"github.com/chartwright/chartwright/internal/rollout"
	"github.com/chartwright/chartwright/internal/watches"
)

var (
	databases = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Database"}
	webs      = schema.GroupKind{Group: "example.com", Kind: "Web"}
)

// dependent makes the custom resource depend on the Database db, which does not exist. The
// functions are called for each notification of the store.
func dependent(w *world, notify ...func()) (store *dependencies.Store, feed cache.ResourceEventHandler) {
	w.t.Helper()
	entry := w.Kind.Watch
	entry.DependsOn = []watches.Dependency{{DependencyKind: watches.DependencyKind{APIVersion: "example.com/v1", Kind: "Database"}, Name: "db"}}
	kind, err := catalog.FromEntry(entry, w.Kind.Chart)
	if err != nil {
		w.t.Fatal(err)
	}
	w.Kind = kind
	store = dependencies.NewStore(func(types.UID) {
		for _, call := range notify {
			call()
		}
	})
	w.Dependencies = store
	w.Version = func(context.Context, schema.GroupVersionKind, types.NamespacedName) (string, error) { return "1", nil }
	f := store.Feed(databases)
	f.Synced()
	return store, f.Handler()
}

// database returns the Database db with a condition Ready.
func database(ready metav1.ConditionStatus, version string) *unstructured.Unstructured {
	db := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{
		map[string]any{"type": "Ready", "status": string(ready), "message": "0 of 1 objects are ready"},
	}}}}
	db.SetGroupVersionKind(databases)
	db.SetNamespace(webKey.Namespace)
	db.SetName("db")
	db.SetUID("db")
	db.SetResourceVersion(version)
	return db
}

// message returns the message of the condition Ready.
func (w *world) message() string {
	w.t.Helper()
	if c := meta.FindStatusCondition(status.Read(w.apiServer.cr).Conditions, api.ConditionReady); c != nil {
		return c.Message
	}
	return ""
}

func TestDependency_InstallWaits(t *testing.T) {
	w := newWorld(t)
	_, feed := dependent(w)
	w.expect([]plan.State{plan.StateWaiting}, "False "+api.ReasonDependencyNotReady, []string{api.Finalizer}, 0)
	if want := "Waits for Database db: not found"; w.message() != want {
		t.Errorf("the message is %q, want %q", w.message(), want)
	}
	feed.OnAdd(database(metav1.ConditionFalse, "1"), false)
	w.expect([]plan.State{plan.StateWaiting}, "False "+api.ReasonDependencyNotReady, []string{api.Finalizer}, 0)
	if want := "Waits for Database db: 0 of 1 objects are ready"; w.message() != want {
		t.Errorf("the message is %q, want %q", w.message(), want)
	}
	feed.OnUpdate(nil, database(metav1.ConditionTrue, "2"))
	if states, _ := w.reconcile(); !slices.Equal(states, []plan.State{plan.StateAbsent}) {
		t.Errorf("decided on %v", states)
	}
	w.settled()
	if called := w.actions.called(); called != "Install" {
		t.Errorf("called %q", called)
	}
}

// A custom resource in sync does not wait for its dependencies.
func TestDependency_NotifiesWhileWaiting(t *testing.T) {
	for name, inSync := range map[string]bool{"waiting": false, "in sync": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if inSync {
				storeInSync(w)
			}
			notifications := 0
			_, feed := dependent(w, func() { notifications++ })
			w.reconcile()
			feed.OnAdd(database(metav1.ConditionTrue, "1"), false)
			if notified := notifications > 0; notified == inSync {
				t.Errorf("notified: %t", notified)
			}
		})
	}
}

// The status names the dependencies, but not their state, and drops them with the last one.
func TestDependency_NamedInStatus(t *testing.T) {
	w := newWorld(t)
	storeInSync(w)
	before := w.Kind
	_, feed := dependent(w)
	want := []api.DependencyStatus{{APIVersion: "example.com/v1", Kind: "Database", Namespace: webKey.Namespace, Name: "db"}}
	for i, ready := range []metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionTrue} {
		feed.OnAdd(database(ready, strconv.Itoa(i+1)), false)
		w.reconcile()
		if diff := cmp.Diff(want, status.Read(w.apiServer.cr).Dependencies); diff != "" {
			t.Errorf("while Ready of the dependency is %s (-want +got):\n%s", ready, diff)
		}
	}
	w.Kind = before
	w.reconcile()
	if content, _ := w.apiServer.cr.Object["status"].(map[string]any); content["dependencies"] != nil || content["state"] == nil {
		t.Errorf("without dependencies, the status is %v", content)
	}
}

func TestStatusOf_OmitsDuplicatesAndHasLimit(t *testing.T) {
	queues := schema.GroupVersionKind{Version: "v1", Kind: "Queue"}
	refs := []dependencies.Ref{
		{Kind: queues, Namespace: "apps", Selector: "app=web"}, {Kind: databases, Namespace: "apps", Name: "db", Ready: &health.Rule{}}, {Kind: databases, Namespace: "apps", Name: "db"},
	}
	want := []api.DependencyStatus{
		{APIVersion: "v1", Kind: "Queue", Namespace: "apps", Selector: "app=web"}, {APIVersion: "example.com/v1", Kind: "Database", Namespace: "apps", Name: "db"},
	}
	if diff := cmp.Diff(want, statusOf(refs)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i := range 2 * api.DependenciesLimit {
		refs = append(refs, dependencies.Ref{Kind: queues, Name: strconv.Itoa(i)})
	}
	if got := statusOf(refs); len(got) != api.DependenciesLimit {
		t.Errorf("the status names %d dependencies", len(got))
	}
}

// An edit that was made after one of the dependency must not overtake it.
func TestDependency_UpgradeAfterEditComparesVersions(t *testing.T) {
	for _, test := range []struct {
		name, version string
		err           error
		want          string
	}{
		{"the watch is up to date", "1", nil, "Upgrade"},
		{"the watch is behind", "2", nil, ""},
		{"the dependency is gone", "", apierrors.NewNotFound(schema.GroupResource{}, "db"), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			storeInSync(w)
			_, feed := dependent(w)
			feed.OnAdd(database(metav1.ConditionTrue, "1"), true)
			w.Version = func(context.Context, schema.GroupVersionKind, types.NamespacedName) (string, error) {
				return test.version, test.err
			}
			if err := unstructured.SetNestedField(w.apiServer.cr.Object, "red", "spec", "color"); err != nil {
				t.Fatal(err)
			}
			w.reconcile()
			w.settled()
			if called := w.actions.called(); called != test.want {
				t.Errorf("called %q, want %q", called, test.want)
			}
		})
	}
}

// The dependency changes while the action is queued.
func TestDependency_CheckedAgainWhenActionBegins(t *testing.T) {
	w := newWorld(t)
	_, feed := dependent(w)
	feed.OnAdd(database(metav1.ConditionTrue, "1"), true)
	end := w.running(types.NamespacedName{Namespace: "apps", Name: "other"}, "other")
	w.reconcile()
	feed.OnUpdate(nil, database(metav1.ConditionFalse, "2"))
	end()
	w.settled()
	if called := w.actions.called(); called != "" {
		t.Errorf("called %q", called)
	}
}

func TestDependency_InSyncNeverWaits(t *testing.T) {
	w := newWorld(t)
	storeInSync(w)
	dependent(w)
	w.reconcile()
	if ready := w.ready(); ready != "True "+api.ReasonDeployed {
		t.Errorf("the condition Ready is %s", ready)
	}
}

func TestDependency_CycleIsInvalid(t *testing.T) {
	w := newWorld(t)
	store, _ := dependent(w)
	store.Set(dependencies.User{Key: dependencies.Key{GroupKind: databases.GroupKind(), NamespacedName: types.NamespacedName{Namespace: webKey.Namespace, Name: "db"}}, UID: "db"},
		[]dependencies.Ref{{Kind: webs.WithVersion("v1"), Namespace: webKey.Namespace, Name: webKey.Name}})
	w.expect([]plan.State{plan.StateInvalid}, "False "+api.ReasonDependencyCycle, []string{api.Finalizer}, 0)
	if want := "Database db → Web web → Database db"; !strings.Contains(w.message(), want) {
		t.Errorf("the message is %q, want %q in it", w.message(), want)
	}
}

func TestDependency_CycleOfMissingSourcesIsInvalid(t *testing.T) {
	w := newWorld(t)
	store, _ := dependent(w)
	store.Set(dependencies.User{Key: dependencies.Key{GroupKind: databases.GroupKind(), NamespacedName: types.NamespacedName{Namespace: webKey.Namespace, Name: "db"}}, UID: "db"},
		[]dependencies.Ref{{Kind: webs.WithVersion("v1"), Namespace: webKey.Namespace, Name: webKey.Name}})
	sourcedFrom(w, databases, "db")
	w.reconcile()
	if ready := w.ready(); ready != "False "+api.ReasonDependencyCycle {
		t.Errorf("the condition Ready is %s", ready)
	}
}

func TestDependency_ForbiddenAnnotationIsInvalid(t *testing.T) {
	w := newWorld(t)
	dependent(w)
	w.annotate(api.AnnotationDependsOn, "Queue.example.com/q")
	w.expect([]plan.State{plan.StateInvalid}, "False "+api.ReasonInvalidValues, []string{api.Finalizer}, 0)
	if !strings.Contains(w.message(), api.AnnotationDependsOn) {
		t.Errorf("the message is %q", w.message())
	}
}

// Other custom resources wait while this one changes, until its status is written.
func TestDependency_HeldUntilStatusIsWritten(t *testing.T) {
	w := newWorld(t)
	store := served(w)
	uses(store, dependencies.User{Key: dependencies.Key{GroupKind: databases.GroupKind()}, UID: "user"})
	waits := func() string {
		store.Feed(webs.WithVersion("v1")).Handler().OnAdd(w.apiServer.cr.DeepCopy(), false)
		if waits := store.Check("user", w.Now()).Waits; waits != nil {
			return waits.Message
		}
		return ""
	}
	w.apiServer.cr.SetResourceVersion("0")
	if got := waits(); got != "the operator has not reconciled it yet" {
		t.Errorf("before the reconciliation: %q", got)
	}
	w.reconcile()
	if got := waits(); got != "it is being changed: Install" {
		t.Errorf("during the install: %q", got)
	}
	w.settled()
	storeInSync(w)
	w.reconcile()
	if got := waits(); got != "" {
		t.Errorf("afterwards: %q", got)
	}
}

func TestPosition_DependencyHoldsNoSlot(t *testing.T) {
	waits := observed(func(o *plan.Observation) { o.Dependency = &plan.Obstacle{Message: "why"} })
	for _, test := range []struct {
		name string
		v    *snapshot
		want rollout.Position
	}{
		{"waits", viewOf([]string{dep}, ofCharts("old"), waits), rollout.Waiting},
		{"waits with an edit", viewOf([]string{dep}, ofCharts("old"), edited, waits), rollout.Waiting},
		{"upgrade running", viewOf([]string{dep}, ofCharts("old"), waits, runningStep(plan.StepUpgrade)), rollout.Moving},
		{"failed upgrade", viewOf([]string{dep}, ofCharts("old"), fails, waits), rollout.Failed},
		{"in sync", viewOf([]string{dep}, ofCharts("new"), waits), rollout.Done},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := positionOf(test.v); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestRollout_DependencyBlocksNoOther(t *testing.T) {
	w := newWorld(t)
	dependent(w)
	w.stored(1, api.StatusDeployed, label(api.LabelChartDigest, "old", api.LabelInputDigest, "old"))
	w.applied()
	w.reconcile()
	queue, err := w.rollout(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if update := status.Read(w.apiServer.cr); meta.FindStatusCondition(update.Conditions, api.ConditionUpdateAvailable) == nil {
		t.Errorf("the status is %+v", update)
	}
	queue.Upsert("other", rollout.Member{Key: types.NamespacedName{Namespace: "apps", Name: "other"}, Position: rollout.Waiting})
	if turn := queue.Turn("other"); turn.Verdict != rollout.Go {
		t.Errorf("the other custom resource gets %v", turn)
	}
}

func TestCycleMessage_NamesSome(t *testing.T) {
	t.Parallel()
	cycle := make([]dependencies.Key, 30)
	for i := range cycle {
		cycle[i] = dependencies.Key{GroupKind: schema.GroupKind{Kind: "Web"}, NamespacedName: types.NamespacedName{Name: strconv.Itoa(i)}}
	}
	if got := cycleMessage(cycle); !strings.Contains(got, " Web 18 → 11 more → Web 0. Remove") {
		t.Error(got)
	}
}
