package reconcile

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/chartwright/chartwright/internal/plan"
)

// served has all of them wait, in this order, and returns in which they get the
// one slot that there is.
func served(t *testing.T, turns ...turn) string {
	t.Helper()
	var order []string
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(1, false)
		s.take(turn{}, nil)
		var mu sync.Mutex
		for i, turn := range turns {
			go func() {
				if !s.take(turn, nil) {
					t.Error("no slot")
				}
				mu.Lock()
				order = append(order, strconv.Itoa(i))
				mu.Unlock()
				s.give(turn.namespace)
			}()
			synctest.Wait()
		}
		s.give("")
		synctest.Wait()
		if s.free != 1 {
			t.Errorf("%d slots are free", s.free)
		}
	})
	return strings.Join(order, " ")
}

func TestWhoGetsASlot(t *testing.T) {
	a, b, edit := turn{usual, "a", "Web"}, turn{usual, "b", "Web"}, turn{urgent, "a", "Web"}
	otherKind := turn{usual, "a", "Database"}
	for _, test := range []struct {
		name  string
		turns []turn
		want  string
	}{
		{"one after another", []turn{a, a, a}, "0 1 2"},
		{"a flood of one flow", []turn{a, a, a, a, b, b}, "0 4 1 5 2 3"},
		{"a flood of one kind in a namespace", []turn{a, a, a, otherKind}, "0 3 1 2"},
		{"two kinds of one namespace and one of another", []turn{a, a, otherKind, otherKind, b, b}, "0 4 2 5 1 3"},
		{"a flow that comes later", []turn{a, a, b, a}, "0 2 1 3"},
		{"what is urgent", []turn{a, b, a, edit}, "3 0 1 2"},
		{"each urgency", []turn{{background, "", ""}, {usual, "", ""}, {prompt, "", ""}, {urgent, "", ""}}, "3 2 1 0"},
		{"what is not urgent, now and then", []turn{{background, "", ""}, edit, edit, edit, edit, edit, edit, edit, edit, edit}, "1 2 3 4 5 6 0 7 8 9"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := served(t, test.turns...); got != test.want {
				t.Errorf("served are %s, expected %s", got, test.want)
			}
		})
	}
}

// Who gives up gets none, and nobody is left out for that.
func TestGivingUpASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(1, false)
		s.take(turn{}, nil)
		stop := make(chan struct{})
		got := make(chan bool, 2)
		go func() { got <- s.take(turn{}, stop) }()
		synctest.Wait()
		go func() { got <- s.take(turn{}, nil) }()
		synctest.Wait()
		close(stop)
		if <-got {
			t.Error("who gave up has a slot")
		}
		s.give("")
		if !<-got {
			t.Error("the next has none")
		}
		s.give("")
		if s.free != 1 {
			t.Errorf("%d slots are free", s.free)
		}
	})
}

func TestUrgency(t *testing.T) {
	upgrade := func(state plan.State) plan.Decision {
		return plan.Decision{State: state, Step: plan.StepUpgrade}
	}
	old := viewOf([]string{dep}, ofCharts("old"))
	for _, test := range []struct {
		name string
		v    *view
		d    plan.Decision
		want urgency
	}{
		{"an edit", viewOf([]string{dep}, ofCharts("old"), edited), upgrade(plan.StateOutOfSync), urgent},
		{"a new chart", old, upgrade(plan.StateOutOfSync), background},
		{"another try", old, upgrade(plan.StateFailed), usual},
		{"what somebody else did", old, upgrade(plan.StateUnmanaged), urgent},
		{"a rollback", old, plan.Decision{State: plan.StateRollbackRequested, Step: plan.StepRollback}, urgent},
		{"a rollback by failure", old, plan.Decision{State: plan.StateFailed, Step: plan.StepRollback}, usual},
		{"damage", old, plan.Decision{State: plan.StateDrifted, Step: plan.StepRepair}, prompt},
		{"the period", old, plan.Decision{State: plan.StateDue, Step: plan.StepVerify}, background},
		{"a request to reconcile", viewOf([]string{dep}, observed(func(o *plan.Observation) { o.VerifyRequested = true })), plan.Decision{State: plan.StateDue, Step: plan.StepVerify}, urgent},
		{"an install", viewOf(nil), plan.Decision{State: plan.StateAbsent, Step: plan.StepInstall}, usual},
		{"a deletion", old, plan.Decision{State: plan.StateDeleting, Step: plan.StepUninstall}, usual},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := urgencyOf(test.v, test.d); got != test.want {
				t.Errorf("it is %d, expected %d", got, test.want)
			}
		})
	}
}
