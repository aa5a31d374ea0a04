package reconcile

import (
	"testing"

	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/reconcile/status"
	"github.com/chartwright/chartwright/internal/release"
)

// TestRollbackRequest_PreviousUndoesTheNewestChange: if the newest change has made no revision,
// the running revision is the previous one.
func TestRollbackRequest_PreviousUndoesTheNewestChange(t *testing.T) {
	const desired, old = "desired", "old"
	edited := func(v *snapshot) { v.digests.Values = "edited" }
	ofOtherInputs := func(v *snapshot) { v.History[0].InputDigest = old }
	failed := func(digest string) remembered {
		return remembered{failure: &status.Failure{Failure: plan.Failure{Target: plan.TargetKey{Goal: plan.GoalSpec, Digest: digest}}}}
	}
	neverReady := remembered{progress: progress{revision: 3, watched: true}}
	held := func(spec string, byFailure bool) func(*snapshot) {
		return marked(release.Marks{Held: &release.Held{Revision: 2, From: 3, Spec: spec, ByFailure: byFailure}})
	}
	followed := specOf(&Reconciler{}, viewOf(nil))
	upgraded, rolledBack := []string{dep, sup, sup}, []string{dep, sup, sup, sup}
	for _, test := range []struct {
		name  string
		v     *snapshot
		known remembered
		// want is the target, and published whether the status shows it.
		want      int
		published bool
	}{
		{"the newest change is deployed", viewOf(upgraded, written), remembered{}, 2, false},
		{"an edit was refused", viewOf(upgraded, written, edited), failed(desired), 3, true},
		{"an edit was refused before a restart", viewOf(upgraded, written, edited), remembered{}, 3, true},
		{"the first edit was refused", viewOf([]string{dep}, written, edited), remembered{}, 1, true},
		{"an edit has failed with a revision", viewOf([]string{fai, dep, sup}, written), failed(desired), 2, false},
		{"an edit after a failed revision was refused", viewOf([]string{fai, dep, sup}, written, edited), failed(desired), 2, false},
		{"a new chart was refused", viewOf(upgraded, written, ofOtherInputs), failed(desired), 3, true},
		{"a new chart waits in the rollout", viewOf(upgraded, written, ofOtherInputs), remembered{}, 2, false},
		{"another failure is remembered", viewOf(upgraded, written, ofOtherInputs), failed(old), 2, false},
		{"the sources of values cannot be read", viewOf(upgraded, written, edited, func(v *snapshot) { v.Unread = true }), remembered{}, 2, false},
		{"the newest revision is of the helm CLI", viewOf(upgraded, edited), remembered{}, 2, false},
		{"the running revision was never ready", viewOf(upgraded, written, edited), neverReady, 2, false},
		{"held", viewOf(rolledBack, held(followed, false), written), remembered{}, 1, false},
		{"an edit after the hold was refused", viewOf(rolledBack, held("before", false), written), remembered{}, 2, true},
		{"held after failures", viewOf(rolledBack, held(followed, true), written, ofOtherInputs), failed(desired), 1, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := &Reconciler{}
			r.memory.with(test.v.CR.GetUID(), func(m *remembered) { *m = test.known })
			test.v.digests.Input = desired
			asking("rollback-to", "previous")(test.v)
			r.observeRequests(test.v)
			if got := test.v.Observation.Request.Revision; got != test.want {
				t.Errorf("the target is revision %d, want %d", got, test.want)
			}
			published := 0
			if test.published {
				published = test.want
			}
			if got := status.Compute(&test.v.Snapshot, plan.Decision{}, nil).Previous; got != int64(published) {
				t.Errorf("the status has revision %d, want %d", got, published)
			}
			// The failure of the rollback replaces that of the upgrade.
			r.memory.with(test.v.CR.GetUID(), func(m *remembered) {
				m.failure = &status.Failure{Failure: plan.Failure{Target: plan.TargetKey{Goal: plan.GoalRevision}}}
			})
			r.observeRequests(test.v)
			if got := test.v.Observation.Request.Revision; got != test.want {
				t.Errorf("after a failure, the target is revision %d, want %d", got, test.want)
			}
		})
	}
}
