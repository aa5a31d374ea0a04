package reconcile

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/decide"
	"github.com/chartwright/chartwright/internal/records"
)

// repairFailed is a failure to apply objects again, for a request or for others.
func repairFailed(aim func(decide.Observation) string) func(*view) {
	return func(v *view) { v.repairFailure = &failure{Failure: decide.Failure{Aim: aim(v.observation)}} }
}

// TestAnswered: a request is told of as answered when it was met, refused, or
// tried in vain, and not before.
func TestAnswered(t *testing.T) {
	nudged := func(o *decide.Observation) { o.Nudge = "now" }
	requested := func(o *decide.Observation) { o.Request = &decide.Request{Token: "one", Revision: 1} }
	aimed := func(v *view) { withFailure(decide.Aim(v.observation), api.ReasonUpgradeFailed, false)(v) }
	for _, test := range []struct {
		name  string
		v     *view
		state decide.State
		want  *api.AnsweredStatus
	}{
		{"nothing is asked for", viewOf([]string{dep}, marked(records.Marks{Rollback: token("1"), Reconcile: token("now")})), decide.StateInSync, nil},
		{"nothing is answered", viewOf([]string{dep}, asking("rollback-to", "1", "reconcile-requested-at", "now", "force", "f", "test", "t")), decide.StateInSync, nil},
		{"all is answered", viewOf([]string{dep}, asking("rollback-to", "1@a", "reconcile-requested-at", "now", "force", "f", "test", "t"),
			marked(records.Marks{Rollback: token("1@a"), Reconcile: token("now"), Force: token("f"), Test: token("t")})), decide.StateInSync,
			&api.AnsweredStatus{RollbackTo: "1@a", ReconcileRequestedAt: "now", Force: "f", Test: "t"}},
		{"others were answered", viewOf([]string{dep}, asking("rollback-to", "1@b", "reconcile-requested-at", "later"),
			marked(records.Marks{Rollback: token("1@a"), Reconcile: token("now")})), decide.StateInSync, nil},
		{"a hold is being ended", viewOf([]string{dep}, asking("rollback-to", "none@a"), marked(records.Marks{Rollback: token("none@a")}), runningStep(decide.StepResume)), decide.StateBusy, nil},
		{"a hold was ended, and an upgrade runs", viewOf([]string{dep}, asking("rollback-to", "none@a"), marked(records.Marks{Rollback: token("none@a")}), runningStep(decide.StepUpgrade)), decide.StateBusy,
			&api.AnsweredStatus{RollbackTo: "none@a"}},
		{"refused", viewOf([]string{dep}, asking("rollback-to", "9"), marked(records.Marks{Rollback: token("9"), Refused: true})), decide.StateInSync,
			&api.AnsweredStatus{RollbackTo: "9"}},
		{"not to be understood", viewOf([]string{dep}, asking("rollback-to", "two"), marked(records.Marks{Rollback: token("two")})), decide.StateInSync, nil},
		{"a rollback has failed before it was stored", viewOf([]string{dep}, asking("rollback-to", "1"), observed(requested), aimed), decide.StateRollbackRequested,
			&api.AnsweredStatus{RollbackTo: "1"}},
		{"something else has failed", viewOf([]string{dep}, asking("rollback-to", "1"), withFailure(wanted, api.ReasonUpgradeFailed, false), observed(requested)), decide.StateRollbackRequested, nil},
		{"tried again, and failed", viewOf([]string{dep}, asking("reconcile-requested-at", "now", "force", "f"), observed(nudged), aimed), decide.StateFailed,
			&api.AnsweredStatus{ReconcileRequestedAt: "now", Force: "f"}},
		{"failed before it was asked for", viewOf([]string{dep}, asking("reconcile-requested-at", "now"), withFailure(wanted, api.ReasonUpgradeFailed, false), observed(nudged)), decide.StateFailed, nil},
		{"verified in vain", viewOf([]string{dep}, asking("reconcile-requested-at", "now"), observed(nudged),
			repairFailed(func(o decide.Observation) string { return decide.AimOf(decide.StepVerify, o) })), decide.StateDue, &api.AnsweredStatus{ReconcileRequestedAt: "now"}},
		{"repaired in vain before", viewOf([]string{dep}, asking("reconcile-requested-at", "now"), observed(nudged),
			repairFailed(func(decide.Observation) string { return decide.AimOf(decide.StepVerify, decide.Observation{}) })), decide.StateDue, nil},
		{"nothing can be done", viewOf(nil, asking("reconcile-requested-at", "now")), decide.StateInvalid, &api.AnsweredStatus{ReconcileRequestedAt: "now"}},
	} {
		if diff := cmp.Diff(test.want, answered(test.v, decide.Decision{State: test.state})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}
