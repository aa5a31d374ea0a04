package status

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/release"
)

// repairFailed adds a failed repair with a target.
func repairFailed(target func(plan.Observation) plan.TargetKey) func(*Snapshot) {
	return func(v *Snapshot) {
		v.RepairFailure = &Failure{Failure: plan.Failure{Target: target(v.Observation)}}
	}
}

// TestAnswered: a request counts as answered only after it was carried out, was refused,
// or has failed.
func TestAnswered(t *testing.T) {
	nudged := func(o *plan.Observation) { o.RetryToken = "now" }
	requested := func(o *plan.Observation) { o.Request = &plan.Request{Token: "one", Revision: 1} }
	aimed := func(v *Snapshot) { withFailure(plan.Target(v.Observation), api.ReasonUpgradeFailed, false)(v) }
	for _, test := range []struct {
		name  string
		v     *Snapshot
		state plan.State
		want  *api.AnsweredStatus
	}{
		{"no request", viewOf([]string{dep}, marked(release.Marks{Rollback: Token("1"), Reconcile: Token("now")})), plan.StateInSync, nil},
		{"nothing is answered", viewOf([]string{dep}, asking("rollback-to", "1", "reconcile-requested-at", "now", "force", "f", "test", "t")), plan.StateInSync, nil},
		{"all are answered", viewOf([]string{dep}, asking("rollback-to", "1@a", "reconcile-requested-at", "now", "force", "f", "test", "t"),
			marked(release.Marks{Rollback: Token("1@a"), Reconcile: Token("now"), Force: Token("f"), Test: Token("t")})), plan.StateInSync,
			&api.AnsweredStatus{RollbackTo: "1@a", ReconcileRequestedAt: "now", Force: "f", Test: "t"}},
		{"other requests were answered", viewOf([]string{dep}, asking("rollback-to", "1@b", "reconcile-requested-at", "later"),
			marked(release.Marks{Rollback: Token("1@a"), Reconcile: Token("now")})), plan.StateInSync, nil},
		{"a hold is being ended", viewOf([]string{dep}, asking("rollback-to", "none@a"), marked(release.Marks{Rollback: Token("none@a")}), runningStep(plan.StepResume)), plan.StateBusy, nil},
		{"a hold was ended, and an upgrade runs", viewOf([]string{dep}, asking("rollback-to", "none@a"), marked(release.Marks{Rollback: Token("none@a")}), runningStep(plan.StepUpgrade)), plan.StateBusy,
			&api.AnsweredStatus{RollbackTo: "none@a"}},
		{"refused", viewOf([]string{dep}, asking("rollback-to", "9"), marked(release.Marks{Rollback: Token("9"), Refused: true})), plan.StateInSync,
			&api.AnsweredStatus{RollbackTo: "9"}},
		{"malformed", viewOf([]string{dep}, asking("rollback-to", "two"), marked(release.Marks{Rollback: Token("two")})), plan.StateInSync, nil},
		{"a rollback has failed before it was stored", viewOf([]string{dep}, asking("rollback-to", "1"), observed(requested), aimed), plan.StateRollbackRequested,
			&api.AnsweredStatus{RollbackTo: "1"}},
		{"another action has failed", viewOf([]string{dep}, asking("rollback-to", "1"), withFailure(ofSpec, api.ReasonUpgradeFailed, false), observed(requested)), plan.StateRollbackRequested, nil},
		{"retried and failed", viewOf([]string{dep}, asking("reconcile-requested-at", "now", "force", "f"), observed(nudged), aimed), plan.StateFailed,
			&api.AnsweredStatus{ReconcileRequestedAt: "now", Force: "f"}},
		{"failed before the request", viewOf([]string{dep}, asking("reconcile-requested-at", "now"), withFailure(ofSpec, api.ReasonUpgradeFailed, false), observed(nudged)), plan.StateFailed, nil},
		{"verification failed", viewOf([]string{dep}, asking("reconcile-requested-at", "now"), observed(nudged),
			repairFailed(func(o plan.Observation) plan.TargetKey { return plan.TargetOf(plan.StepVerify, o) })), plan.StateDue, &api.AnsweredStatus{ReconcileRequestedAt: "now"}},
		{"repair failed before the request", viewOf([]string{dep}, asking("reconcile-requested-at", "now"), observed(nudged),
			repairFailed(func(plan.Observation) plan.TargetKey { return plan.TargetOf(plan.StepVerify, plan.Observation{}) })), plan.StateDue, nil},
		{"spec invalid", viewOf(nil, asking("reconcile-requested-at", "now")), plan.StateInvalid, &api.AnsweredStatus{ReconcileRequestedAt: "now"}},
	} {
		if diff := cmp.Diff(test.want, answered(test.v, plan.Decision{State: test.state})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}
