package reconcile

import (
	"testing"

	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/reconcile/queue"
)

func TestPriority(t *testing.T) {
	upgrade := func(state plan.State) plan.Decision {
		return plan.Decision{State: state, Step: plan.StepUpgrade}
	}
	old := viewOf([]string{dep}, ofCharts("old"))
	for _, test := range []struct {
		name string
		v    *snapshot
		d    plan.Decision
		want queue.Priority
	}{
		{"an edit", viewOf([]string{dep}, ofCharts("old"), edited), upgrade(plan.StateOutOfSync), queue.Urgent},
		{"a new chart", old, upgrade(plan.StateOutOfSync), queue.Background},
		{"a retry", old, upgrade(plan.StateFailed), queue.Normal},
		{"a change by another program", old, upgrade(plan.StateUnmanaged), queue.Urgent},
		{"a rollback", old, plan.Decision{State: plan.StateRollbackRequested, Step: plan.StepRollback}, queue.Urgent},
		{"a rollback after failures", old, plan.Decision{State: plan.StateFailed, Step: plan.StepRollback}, queue.Normal},
		{"drift", old, plan.Decision{State: plan.StateDrifted, Step: plan.StepRepair}, queue.High},
		{"the period", old, plan.Decision{State: plan.StateDue, Step: plan.StepVerify}, queue.Background},
		{"a request to reconcile", viewOf([]string{dep}, observed(func(o *plan.Observation) { o.VerifyRequested = true })), plan.Decision{State: plan.StateDue, Step: plan.StepVerify}, queue.Urgent},
		{"an install", viewOf(nil), plan.Decision{State: plan.StateAbsent, Step: plan.StepInstall}, queue.Normal},
		{"a deletion", old, plan.Decision{State: plan.StateDeleting, Step: plan.StepUninstall}, queue.Normal},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := priorityOf(test.v, test.d); got != test.want {
				t.Errorf("priority %d, want %d", got, test.want)
			}
		})
	}
}
