package reconcile

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/chartwright/chartwright/internal/decide"
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
	upgrade := func(state decide.State) decide.Decision {
		return decide.Decision{State: state, Step: decide.StepUpgrade}
	}
	old := viewOf([]string{dep}, ofCharts("old"))
	for _, test := range []struct {
		name string
		v    *view
		d    decide.Decision
		want urgency
	}{
		{"an edit", viewOf([]string{dep}, ofCharts("old"), edited), upgrade(decide.StateOutOfSync), urgent},
		{"a new chart", old, upgrade(decide.StateOutOfSync), background},
		{"another try", old, upgrade(decide.StateFailed), usual},
		{"what somebody else did", old, upgrade(decide.StateUnmanaged), urgent},
		{"a rollback", old, decide.Decision{State: decide.StateRollbackRequested, Step: decide.StepRollback}, urgent},
		{"a rollback by failure", old, decide.Decision{State: decide.StateFailed, Step: decide.StepRollback}, usual},
		{"damage", old, decide.Decision{State: decide.StateDrifted, Step: decide.StepRepair}, prompt},
		{"the period", old, decide.Decision{State: decide.StateDue, Step: decide.StepVerify}, background},
		{"a request to reconcile", viewOf([]string{dep}, observed(func(o *decide.Observation) { o.VerifyRequested = true })), decide.Decision{State: decide.StateDue, Step: decide.StepVerify}, urgent},
		{"an install", viewOf(nil), decide.Decision{State: decide.StateAbsent, Step: decide.StepInstall}, usual},
		{"a deletion", old, decide.Decision{State: decide.StateDeleting, Step: decide.StepUninstall}, usual},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := urgencyOf(test.v, test.d); got != test.want {
				t.Errorf("it is %d, expected %d", got, test.want)
			}
		})
	}
}
