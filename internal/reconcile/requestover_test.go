package reconcile

import (
	"errors"
	"testing"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/decide"
	"github.com/chartwright/chartwright/internal/records"
)

// TestAnEditEndsARequestInVain: a rollback that failed before a record of it was
// stored keeps no later edit from being followed, and is not tried any more.
func TestAnEditEndsARequestInVain(t *testing.T) {
	r, _ := concluding()
	next := func(spec, asked string, marks records.Marks) (*view, decide.Decision) {
		v := viewOf([]string{dep, sup}, asking("rollback-to", asked), withSpec(map[string]any{"a": spec}), marked(marks))
		written(v)
		v.observation.Now = r.Now()
		r.observeRequests(v)
		r.observeFailures(v)
		return v, decide.Next(v.observation)
	}
	expect := func(when string, d decide.Decision, state decide.State, step decide.Step) {
		t.Helper()
		if d.State != state || d.Step != step {
			t.Fatalf("%s: %+v, expected %s and %s", when, d, state, step)
		}
	}
	v, d := next("one", "1", records.Marks{})
	expect("at first", d, decide.StateRollbackRequested, decide.StepRollback)
	r.conclude(t.Context(), v, d, errors.New("the API server refuses it"))
	_, d = next("one", "1", records.Marks{})
	expect("in vain", d, decide.StateRollbackRequested, decide.StepWait)
	_, d = next("one", "1@again", records.Marks{})
	expect("asked again", d, decide.StateRollbackRequested, decide.StepRollback)

	_, d = next("one", "1", records.Marks{})
	expect("asked as before", d, decide.StateRollbackRequested, decide.StepWait)
	v, d = next("two", "1", records.Marks{})
	expect("edited", d, decide.StateRollbackRequested, decide.StepRefuse)
	r.conclude(t.Context(), v, d, errors.New("the record cannot be written"))
	_, d = next("two", "1", records.Marks{})
	expect("not recorded", d, decide.StateRollbackRequested, decide.StepWait)
	marks := r.marksAfter(v, decide.Decision{State: decide.StateRollbackRequested, Step: decide.StepRefuse})
	v, d = next("two", "1", marks)
	if marks.Rollback != token("1") || d.State == decide.StateRollbackRequested {
		t.Errorf("its marks are %+v, and next comes %+v", marks, d)
	}
	if s := status(v, d, nil); s.Rollback != nil || refused(v) != "" || s.Answered == nil || s.Answered.RollbackTo != "1" {
		t.Errorf("%s: %q, answered is %+v", api.ConditionRollbackRefused, refused(v), s.Answered)
	}
}
