package queue

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// served queues tickets in this order, and returns the order of their service by the
// only slot.
func served(t *testing.T, turns ...Key) string {
	t.Helper()
	var order []string
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(1, false)
		s.take(Key{}, nil)
		var mu sync.Mutex
		for i, turn := range turns {
			go func() {
				if !s.take(turn, nil) {
					t.Error("no slot")
				}
				mu.Lock()
				order = append(order, strconv.Itoa(i))
				mu.Unlock()
				s.give(turn.Namespace)
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

func TestSlots_Order(t *testing.T) {
	a, b, edit := Key{Normal, "a", "Web"}, Key{Normal, "b", "Web"}, Key{Urgent, "a", "Web"}
	otherKind := Key{Normal, "a", "Database"}
	for _, test := range []struct {
		name  string
		turns []Key
		want  string
	}{
		{"one after another", []Key{a, a, a}, "0 1 2"},
		{"a flood in one namespace", []Key{a, a, a, a, b, b}, "0 4 1 5 2 3"},
		{"a flood of one kind in a namespace", []Key{a, a, a, otherKind}, "0 3 1 2"},
		{"two kinds of one namespace and one of another", []Key{a, a, otherKind, otherKind, b, b}, "0 4 2 5 1 3"},
		{"a namespace that comes later", []Key{a, a, b, a}, "0 2 1 3"},
		{"an urgent ticket", []Key{a, b, a, edit}, "3 0 1 2"},
		{"each priority", []Key{{Background, "", ""}, {Normal, "", ""}, {High, "", ""}, {Urgent, "", ""}}, "3 2 1 0"},
		{"a background ticket among urgent ones", []Key{{Background, "", ""}, edit, edit, edit, edit, edit, edit, edit, edit, edit}, "1 2 3 4 5 6 0 7 8 9"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := served(t, test.turns...); got != test.want {
				t.Errorf("served %s, want %s", got, test.want)
			}
		})
	}
}

// A canceled ticket gets no slot and blocks no other ticket.
func TestSlots_CanceledTicket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(1, false)
		s.take(Key{}, nil)
		stop := make(chan struct{})
		got := make(chan bool, 2)
		go func() { got <- s.take(Key{}, stop) }()
		synctest.Wait()
		go func() { got <- s.take(Key{}, nil) }()
		synctest.Wait()
		close(stop)
		if <-got {
			t.Error("the canceled ticket has a slot")
		}
		s.give("")
		if !<-got {
			t.Error("the next ticket has no slot")
		}
		s.give("")
		if s.free != 1 {
			t.Errorf("%d slots are free", s.free)
		}
	})
}
