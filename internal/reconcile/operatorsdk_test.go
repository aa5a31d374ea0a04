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

func TestGuard_ReplacesFinalizersOfTheOperatorSDK(t *testing.T) {
	for _, test := range []struct {
		name           string
		stand          []string
		change         func([]string) []string
		want           []string
		changesNothing bool
	}{
		{"none", nil, guard, []string{api.Finalizer}, false},
		{"of the operator-sdk", []string{"others", api.FinalizerOperatorSDK}, guard, []string{"others", api.Finalizer}, false},
		{"legacy one of the operator-sdk", []string{api.FinalizerOperatorSDKLegacy}, guard, []string{api.Finalizer}, false},
		{"all three", []string{api.FinalizerOperatorSDK, api.Finalizer, api.FinalizerOperatorSDKLegacy}, guard, []string{api.Finalizer}, false},
		{"ours", []string{api.Finalizer}, guard, []string{api.Finalizer}, true},
		{"removal of the operator-sdk's", []string{api.FinalizerOperatorSDK, "others"}, unguard, []string{"others"}, false},
		{"removal of all three", []string{api.FinalizerOperatorSDK, api.Finalizer, api.FinalizerOperatorSDKLegacy}, unguard, []string{}, false},
		{"finalizer of another controller only", []string{"others"}, unguard, []string{"others"}, true},
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

// TestForces_AnnotationsOfTheOperatorSDK: the annotations force every upgrade, and
// rollbacks after failures.
func TestForces_AnnotationsOfTheOperatorSDK(t *testing.T) {
	both := annotations.Annotations{ForceUpgrades: true, ForceRollbacks: true}
	for _, test := range []struct {
		name string
		asks annotations.Annotations
		d    plan.Decision
		want bool
	}{
		{"an upgrade", both, plan.Decision{State: plan.StateOutOfSync, Step: plan.StepUpgrade}, true},
		{"an upgrade after a failure", both, plan.Decision{State: plan.StateFailed, Step: plan.StepUpgrade}, true},
		{"a rollback after failures", both, plan.Decision{State: plan.StateFailed, Step: plan.StepRollback}, true},
		{"a requested rollback", both, plan.Decision{State: plan.StateRollbackRequested, Step: plan.StepRollback}, false},
		{"a repair", both, plan.Decision{State: plan.StateDrifted, Step: plan.StepRepair}, false},
		{"an install", both, plan.Decision{State: plan.StateAbsent, Step: plan.StepInstall}, false},
		{"an upgrade, only rollbacks forced", annotations.Annotations{ForceRollbacks: true}, plan.Decision{Step: plan.StepUpgrade}, false},
		{"a rollback, only upgrades forced", annotations.Annotations{ForceUpgrades: true}, plan.Decision{State: plan.StateFailed, Step: plan.StepRollback}, false},
	} {
		if got := (&snapshot{Snapshot: status.Snapshot{Requests: test.asks}}).forces(test.d); got != test.want {
			t.Errorf("%s is forced: %v", test.name, got)
		}
	}
}
