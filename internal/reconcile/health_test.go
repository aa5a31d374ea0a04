package reconcile

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/inventory"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/reconcile/status"
)

// TestObserveHealth_OldRevisionIsNotNeverReady: after a restart, an old revision with
// unready objects does not count as one that never became ready.
func TestObserveHealth_OldRevisionIsNotNeverReady(t *testing.T) {
	const deadline = 10 * time.Minute
	now := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	for _, test := range []struct {
		name string
		age  time.Duration
		// overdue and neverReady are the results of the first observation, and the later ones
		// those after another deadline.
		overdue, neverReady           bool
		overdueLater, neverReadyLater bool
	}{
		{"weeks old", 500 * time.Hour, false, false, true, false},
		{"deadline reached", deadline, false, false, true, false},
		{"before the deadline", deadline - time.Second, false, false, true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			index := inventory.NewIndex(func(types.UID) {}, func(types.UID) {})
			index.Expect("u", []apply.State{{Key: apply.Key{Group: "apps", Kind: "Deployment", Name: "web"}, Owner: "u"}})
			r := &Reconciler{Shared: Shared{Inventory: inventory.Inventory{Index: index}}}
			observe := func(now time.Time, overdue, neverReady bool) {
				t.Helper()
				v := viewOf([]string{dep, sup}, observed(func(o *plan.Observation) { o.Now, o.Retries, o.LastGood = now, 1, 1 }))
				v.CR.SetUID("u")
				v.History[0].Deployed = metav1.NewTime(now.Add(-test.age))
				r.observeHealth(v)
				if len(v.Health.Unready) != 1 {
					t.Fatal("the release is ready")
				}
				if v.Overdue != overdue || v.Observation.Overdue != neverReady {
					t.Errorf("overdue: %v, never ready: %v, want %v and %v", v.Overdue, v.Observation.Overdue, overdue, neverReady)
				}
				if d := plan.Next(v.Observation); (d.Step == plan.StepRollback) != neverReady {
					t.Errorf("next step %s", d.Step)
				}
			}
			observe(now, test.overdue, test.neverReady)
			observe(now.Add(deadline), test.overdueLater, test.neverReadyLater)
		})
	}
}

// TestObserveHealth_OpenEndedObjectsAreNeverOverdue: objects without a controller's report
// cause no rollback. Other unready objects of the release do.
func TestObserveHealth_OpenEndedObjectsAreNeverOverdue(t *testing.T) {
	const deadline = 10 * time.Minute
	now := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	for _, test := range []struct {
		name    string
		missing bool
		overdue bool
	}{
		{"not reported", false, false},
		{"not reported, and another is missing", true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			index := inventory.NewIndex(func(types.UID) {}, func(types.UID) {})
			// The watch event of the first object is missing.
			widget := apply.State{Key: apply.Key{Group: "example.com", Kind: "Widget", Name: "web"}, UID: "w", ResourceVersion: "1", Owner: "u", Managed: true}
			index.Put(widget)
			expected := []apply.State{widget}
			if test.missing {
				expected = append(expected, apply.State{Key: apply.Key{Group: "apps", Kind: "Deployment", Name: "web"}, Owner: "u"})
			}
			index.Expect("u", expected)
			r := &Reconciler{Shared: Shared{Inventory: inventory.Inventory{Index: index}}}
			observe := func(after time.Duration) *snapshot {
				v := viewOf([]string{dep, sup}, observed(func(o *plan.Observation) { o.Now, o.Retries, o.LastGood = now.Add(after), 1, 1 }))
				v.CR.SetUID("u")
				v.History[0].Deployed = metav1.NewTime(now)
				r.observeHealth(v)
				return v
			}
			observe(time.Second)
			v := observe(2 * deadline)
			if v.Overdue != test.overdue || v.Observation.Overdue != test.overdue {
				t.Errorf("overdue: %v, rolled back: %v, want %v", v.Overdue, v.Observation.Overdue, test.overdue)
			}
			if d := plan.Next(v.Observation); (d.Step == plan.StepRollback) != test.overdue {
				t.Errorf("next step %s", d.Step)
			}
			s := status.Compute(&v.Snapshot, plan.Decision{State: plan.StateInSync}, nil)
			if stalled := meta.IsStatusConditionTrue(s.Conditions, api.ConditionStalled); stalled != test.overdue {
				t.Errorf("stalled: %v, want %v", stalled, test.overdue)
			}
		})
	}
}
