package reconcile

import (
	"errors"
	"testing"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/reconcile/status"
	"github.com/chartwright/chartwright/internal/release"
)

// TestRollbackRequest_EditAfterFailureEndsIt: after a rollback that failed before a
// record was stored, a later edit is followed and the rollback is not retried.
func TestRollbackRequest_EditAfterFailureEndsIt(t *testing.T) {
	r, _ := concluding()
	next := func(spec, asked string, marks release.Marks) (*snapshot, plan.Decision) {
		v := viewOf([]string{dep, sup}, asking("rollback-to", asked), withSpec(map[string]any{"a": spec}), marked(marks))
		written(v)
		v.Observation.Now = r.Now()
		r.observeRequests(v)
		r.observeFailures(v)
		return v, plan.Next(v.Observation)
	}
	expect := func(when string, d plan.Decision, state plan.State, step plan.Step) {
		t.Helper()
		if d.State != state || d.Step != step {
			t.Fatalf("%s: %+v, expected %s and %s", when, d, state, step)
		}
	}
	v, d := next("one", "1", release.Marks{})
	expect("at first", d, plan.StateRollbackRequested, plan.StepRollback)
	r.conclude(t.Context(), v, d, errors.New("the API server refuses it"))
	_, d = next("one", "1", release.Marks{})
	expect("in vain", d, plan.StateRollbackRequested, plan.StepWait)
	_, d = next("one", "1@again", release.Marks{})
	expect("asked again", d, plan.StateRollbackRequested, plan.StepRollback)

	_, d = next("one", "1", release.Marks{})
	expect("asked as before", d, plan.StateRollbackRequested, plan.StepWait)
	v, d = next("two", "1", release.Marks{})
	expect("edited", d, plan.StateRollbackRequested, plan.StepRefuse)
	r.conclude(t.Context(), v, d, errors.New("the record cannot be written"))
	_, d = next("two", "1", release.Marks{})
	expect("not recorded", d, plan.StateRollbackRequested, plan.StepWait)
	marks := r.marksAfter(v, plan.Decision{State: plan.StateRollbackRequested, Step: plan.StepRefuse})
	v, d = next("two", "1", marks)
	if marks.Rollback != status.Token("1") || d.State == plan.StateRollbackRequested {
		t.Errorf("marks %+v, next decision %+v", marks, d)
	}
	if s := status.Compute(&v.Snapshot, d, nil); s.Rollback != nil || status.Refused(&v.Snapshot) != "" || s.Answered == nil || s.Answered.RollbackTo != "1" {
		t.Errorf("%s: %q, answered is %+v", api.ConditionRollbackRefused, status.Refused(&v.Snapshot), s.Answered)
	}
}
