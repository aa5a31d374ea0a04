package reconcile

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/reconcile/queue"
)

// A panic of an action becomes an error without the stack, which is in the log.
// logged is what controller-runtime has logged. It keeps the first logger of a process.
var logged struct {
	sync.Mutex
	text string
}

var captureLog = sync.OnceFunc(func() {
	log.SetLogger(funcr.New(func(_, args string) {
		logged.Lock()
		defer logged.Unlock()
		logged.text += args
	}, funcr.Options{}))
})

func TestRecoverable_LogsStack(t *testing.T) {
	captureLog()
	logged.text = ""
	var none *snapshot
	err := recoverable(func() error { return none.fails() })
	if err == nil || !strings.HasPrefix(err.Error(), "internal error: ") || strings.Contains(err.Error(), "\n") {
		t.Errorf("the error is %v", err)
	}
	if !strings.Contains(logged.text, "(*snapshot).fails") {
		t.Errorf("the log has no stack: %s", logged.text)
	}
}

// fails dereferences nil.
func (v *snapshot) fails() error { return errors.New(v.version) }

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
