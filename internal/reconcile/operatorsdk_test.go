package reconcile

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/api/annotations"
	"github.com/chartwright/chartwright/internal/plan"
)

// stands returns conditions of the operator-sdk's: "ReleaseFailed=True".
func stands(texts ...string) []metav1.Condition {
	var conditions []metav1.Condition
	for _, text := range texts {
		kind, status, _ := strings.Cut(text, "=")
		conditions = append(conditions, metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status)})
	}
	return conditions
}

// TestConditionsOfTheOperatorSDK: kept up where they are, and only there.
func TestConditionsOfTheOperatorSDK(t *testing.T) {
	deployed, inSync := []string{api.StatusDeployed}, plan.Decision{State: plan.StateInSync}
	waits := plan.Decision{State: plan.StateFailed, Step: plan.StepWait, After: 1}
	always := stands("Initialized=True", "Deployed=True", "ReleaseFailed=False", "Irreconcilable=False", "Paused=False")
	refused := func(v *view) {
		v.observation.Unverified = true
		v.repairFailure = &failure{reason: api.ReasonRefused, message: "no"}
		v.repairFailure.Aim = plan.AimOf(plan.StepRepair, v.observation)
	}
	for _, test := range []struct {
		name   string
		stands []metav1.Condition
		v      *view
		d      plan.Decision
		want   []string
	}{
		{"a resource of our own", nil, viewOf(deployed), inSync, nil},
		{"a resource of our own that fails", nil, viewOf(deployed, withFailure(wanted, api.ReasonUpgradeFailed, false)), waits, nil},
		{"all is well", stands("Initialized=True", "Deployed=True"), viewOf(deployed), inSync, []string{"Initialized=True "}},
		{"what had failed runs now", stands("Initialized=True", "ReleaseFailed=True", "Irreconcilable=True"), viewOf(deployed), inSync, []string{"Initialized=True "}},
		{
			"an install fails", stands("Initialized=True"), viewOf([]string{api.StatusFailed}, withFailure(wanted, api.ReasonInstallFailed, false)), waits,
			[]string{"Initialized=True ", "ReleaseFailed=True InstallError"},
		},
		{
			"an upgrade fails", stands("Initialized=True"), viewOf(deployed, withFailure(wanted, api.ReasonUpgradeFailed, false)), waits,
			[]string{"Initialized=True ", "ReleaseFailed=True UpgradeError"},
		},
		{
			"an uninstall fails", stands("Initialized=True"), viewOf(deployed, beingDeleted, withFailure("gone", api.ReasonUninstallFailed, false)), waits,
			[]string{"Initialized=True ", "ReleaseFailed=True UninstallError"},
		},
		{
			"the chart refuses the spec of what runs", stands("Initialized=True"), viewOf(deployed, withFailure(wanted, api.ReasonInvalidValues, true)), waits,
			[]string{"Initialized=True ", "Irreconcilable=True ReconcileError"},
		},
		{
			"the chart refuses the first spec", stands("Initialized=True"), viewOf(nil, withFailure(wanted, api.ReasonInvalidValues, true)), waits,
			[]string{"Initialized=True ", "ReleaseFailed=True InstallError"},
		},
		{"what runs cannot be repaired", stands("Initialized=True"), viewOf(deployed, refused), inSync, []string{"Initialized=True ", "Irreconcilable=True ReconcileError"}},
		{"always there, all is well", always, viewOf(deployed), inSync, []string{"Initialized=True ", "ReleaseFailed=False ", "Irreconcilable=False "}},
		{
			"always there, an upgrade fails", always, viewOf(deployed, withFailure(wanted, api.ReasonUpgradeFailed, false)), waits,
			[]string{"Initialized=True ", "ReleaseFailed=True UpgradeError", "Irreconcilable=False "},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := status(test.v, test.d, test.stands)
			var got []string
			for _, c := range conditions(s) {
				if strings.HasPrefix(c, "Initialized") || strings.HasPrefix(c, "ReleaseFailed") || strings.HasPrefix(c, "Irreconcilable") {
					got = append(got, c)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if patch, err := difference(s, status(test.v, test.d, s.Conditions)); err != nil || patch != nil {
				t.Errorf("the next pass would patch %v, %v", patch, err)
			}
		})
	}
}

func TestDropManifest(t *testing.T) {
	type m = map[string]any
	theirs := m{"deployedRelease": m{"name": "web", "manifest": "a: b"}}
	for _, test := range []struct {
		name                string
		patch, stands, want m
	}{
		{name: "nothing of theirs", stands: m{"deployedRelease": m{"name": "web"}}},
		{name: "no status"},
		{name: "the rest is as it should be", stands: theirs, want: m{"deployedRelease": m{"manifest": nil}}},
		{name: "beside another change", patch: m{"state": "x"}, stands: theirs, want: m{"state": "x", "deployedRelease": m{"manifest": nil}}},
		{name: "another name", patch: m{"deployedRelease": m{"name": "b"}}, stands: theirs, want: m{"deployedRelease": m{"name": "b", "manifest": nil}}},
		{name: "it goes whole", patch: m{"deployedRelease": nil}, stands: theirs, want: m{"deployedRelease": nil}},
	} {
		if diff := cmp.Diff(test.want, dropManifest(test.patch, test.stands)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestFinalizersOfTheOperatorSDK(t *testing.T) {
	for _, test := range []struct {
		name           string
		stand          []string
		change         func(client.Object) bool
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
		cr := &unstructured.Unstructured{Object: map[string]any{}}
		if test.stand != nil {
			cr.SetFinalizers(test.stand)
		}
		if changed := test.change(cr); changed == test.changesNothing {
			t.Errorf("%s: changed %v", test.name, changed)
		}
		if diff := cmp.Diff(test.want, cr.GetFinalizers()); diff != "" {
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
		if got := (&view{asks: test.asks}).forces(test.d); got != test.want {
			t.Errorf("%s is forced: %v", test.name, got)
		}
	}
}
