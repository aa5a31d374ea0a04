package reconcile

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/api/annotations"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/reconcile/status"
)

func TestFinalizersOfTheOperatorSDK(t *testing.T) {
	for _, test := range []struct {
		name           string
		stand          []string
		change         func([]string) []string
		want           []string
		changesNothing bool
	}{
		{"none", nil, guard, []string{api.Finalizer}, false},
		{"theirs", []string{"others", api.FinalizerOperatorSDK}, guard, []string{"others", api.Finalizer}, false},
		{"their old one", []string{api.FinalizerOperatorSDKLegacy}, guard, []string{api.Finalizer}, false},
		{"both of theirs and ours", []string{api.FinalizerOperatorSDK, api.Finalizer, api.FinalizerOperatorSDKLegacy}, guard, []string{api.Finalizer}, false},
		{"ours", []string{api.Finalizer}, guard, []string{api.Finalizer}, true},
		{"it goes with theirs", []string{api.FinalizerOperatorSDK, "others"}, unguard, []string{"others"}, false},
		{"it goes with all", []string{api.FinalizerOperatorSDK, api.Finalizer, api.FinalizerOperatorSDKLegacy}, unguard, []string{}, false},
		{"it goes with others'", []string{"others"}, unguard, []string{"others"}, true},
	} {
		got := test.change(test.stand)
		if same := slices.Equal(got, test.stand); same != test.changesNothing {
			t.Errorf("%s: unchanged %v", test.name, same)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// TestForcesOfTheOperatorSDK: its annotations force every upgrade, and of the
// rollbacks those that answer a failure.
func TestForcesOfTheOperatorSDK(t *testing.T) {
	both := annotations.Annotations{ForceUpgrades: true, ForceRollbacks: true}
	for _, test := range []struct {
		name string
		asks annotations.Annotations
		d    plan.Decision
		want bool
	}{
		{"an upgrade", both, plan.Decision{State: plan.StateOutOfSync, Step: plan.StepUpgrade}, true},
		{"an upgrade of what failed", both, plan.Decision{State: plan.StateFailed, Step: plan.StepUpgrade}, true},
		{"a rollback that answers a failure", both, plan.Decision{State: plan.StateFailed, Step: plan.StepRollback}, true},
		{"a rollback that a person asks for", both, plan.Decision{State: plan.StateRollbackRequested, Step: plan.StepRollback}, false},
		{"a repair", both, plan.Decision{State: plan.StateDrifted, Step: plan.StepRepair}, false},
		{"an install", both, plan.Decision{State: plan.StateAbsent, Step: plan.StepInstall}, false},
		{"an upgrade, of rollbacks alone", annotations.Annotations{ForceRollbacks: true}, plan.Decision{Step: plan.StepUpgrade}, false},
		{"a rollback, of upgrades alone", annotations.Annotations{ForceUpgrades: true}, plan.Decision{State: plan.StateFailed, Step: plan.StepRollback}, false},
	} {
		if got := (&snapshot{Snapshot: status.Snapshot{Requests: test.asks}}).forces(test.d); got != test.want {
			t.Errorf("%s is forced: %v", test.name, got)
		}
	}
}
