package queue

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/chartwright/chartwright/internal/plan"
)

// served reports whether a ticket has a slot.
func (t *ticket) served() bool {
	select {
	case <-t.got:
		return true
	default:
		return false
	}
}

func TestSlots_ShareOfOneNamespace(t *testing.T) {
	for _, test := range []struct {
		name       string
		size       int
		single     bool
		namespaces int
		want       int
	}{
		{"of two namespaces", 16, false, 2, 8},
		{"of many", 16, false, 40, 8},
		{"of an odd number", 5, false, 2, 2},
		{"the only one with custom resources", 16, false, 1, 15},
		{"before any custom resource is known", 16, false, 0, 15},
		{"the only one that the operator watches", 16, true, 1, 16},
		{"of one slot", 1, false, 2, 1},
		{"of one slot, the only one with custom resources", 1, false, 1, 1},
		{"of two slots", 2, false, 2, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSlots(test.size, test.single)
			for i := range test.namespaces {
				s.use(types.UID(strconv.Itoa(i)), strconv.Itoa(i))
			}
			held := 0
			for range 2 * test.size {
				if s.enter(Key{Normal, "0", strconv.Itoa(held)}).served() {
					held++
				}
			}
			if held != test.want {
				t.Errorf("one namespace holds %d of %d slots, want %d", held, test.size, test.want)
			}
		})
	}
}

// TestSlots_ShareFollowsNamespaces: the share grows when the last custom resource
// of the other namespaces is deleted, and shrinks when one is created.
func TestSlots_ShareFollowsNamespaces(t *testing.T) {
	s := newSlots(4, false)
	s.use("one", "a")
	s.use("two", "b")
	var of []*ticket
	for range 5 {
		of = append(of, s.enter(Key{Normal, "a", "Web"}))
	}
	held := func() (n int) {
		for _, ticket := range of {
			if ticket.served() {
				n++
			}
		}
		return n
	}
	if held() != 2 {
		t.Errorf("%d are held with another namespace in use, want 2", held())
	}
	s.leave("two")
	if held() != 3 {
		t.Errorf("%d are held when the other namespace is empty, want 3", held())
	}
	s.use("three", "b")
	if !s.enter(Key{Normal, "b", "Web"}).served() {
		t.Error("the first of another namespace waits")
	}
	s.give("a")
	if held() != 3 {
		t.Errorf("%d were served, though the namespace still holds half, want 3", held())
	}
	s.give("a")
	if held() != 4 {
		t.Errorf("%d were served, though the namespace holds less than half, want 4", held())
	}
	s.use("three", "a") // Its release has moved.
	if held() != 5 || len(s.using) != 1 {
		t.Errorf("%d were served after the last move, want all; %d namespaces are in use", held(), len(s.using))
	}
}

// TestSlots_SlowActionsOfOneTenantDelayNoOther: a tenant floods two kinds in its
// namespace with actions that never end, and the next action of another tenant
// gets a slot at once.
func TestSlots_SlowActionsOfOneTenantDelayNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, _ := startPool(t, 16)
		pool.Use("attacker", "a")
		pool.Use("victim", "b")
		end := make(chan struct{})
		for i := range 40 {
			release := types.NamespacedName{Namespace: "a", Name: strconv.Itoa(i)}
			of := Key{Normal, "a", "Kind" + strconv.Itoa(i%2)}
			run(pool, release, "attacker", plan.StepInstall, plan.Inputs{}, of, func(context.Context, Slot) { <-end }, func() {})
		}
		served := false
		run(pool, types.NamespacedName{Namespace: "b", Name: "victim"}, "victim", plan.StepInstall, plan.Inputs{}, Key{Normal, "b", "Kind0"},
			func(context.Context, Slot) { served = true }, func() {})
		synctest.Wait()
		if !served {
			t.Error("another tenant's install waits for slow actions of the first")
		}
		close(end)
	})
}

// TestSlots_LentSlotCountsWithinTheShare: an action whose namespace holds
// its share takes its slot again when another action of the namespace ends.
func TestSlots_LentSlotCountsWithinTheShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(2, false)
		s.use("one", "a")
		s.use("two", "b")
		of := Key{Normal, "a", "Web"}
		s.take(of, nil)
		s.give("a") // The slot is lent.
		other := s.enter(of)
		resumed := make(chan struct{})
		go func() {
			s.take(Key{Urgent, "a", "Web"}, nil)
			close(resumed)
		}()
		synctest.Wait()
		select {
		case <-resumed:
			t.Error("the namespace holds both slots")
		default:
		}
		if !other.served() || !s.enter(Key{Normal, "b", "Web"}).served() {
			t.Error("a free slot is not used")
		}
		s.give("a")
		<-resumed
	})
}

// TestSlots_Properties: after any sequence of events, a namespace holds at most its
// share, no slot is free while a ticket that may get it waits, and every ticket is
// served.
func TestSlots_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 9).Draw(t, "slots")
		s := newSlots(size, rapid.IntRange(1, 5).Draw(t, "one namespace is watched") == 1)
		namespaces := []string{"a", "b", "c", "d"}[:rapid.IntRange(1, 4).Draw(t, "namespaces")]
		for i, namespace := range namespaces {
			s.use(types.UID(strconv.Itoa(i)), namespace)
		}
		all := map[*ticket]bool{}
		held := func(of string) (n int) {
			for ticket := range all {
				if ticket.served() && (of == "" || ticket.key.Namespace == of) {
					n++
				}
			}
			return n
		}
		// over is the number of slots that a namespace keeps when its share shrinks.
		over := map[string]int{}
		check := func() {
			share := s.share()
			if total := held(""); total+s.free != size {
				t.Fatalf("%d slots are held and %d free, of %d", total, s.free, size)
			}
			for _, namespace := range namespaces {
				now := held(namespace)
				if now > max(share, over[namespace]) {
					t.Fatalf("namespace %s holds %d slots, its share is %d", namespace, now, share)
				}
				over[namespace] = now
			}
			for ticket := range all {
				if s.free > 0 && !ticket.gone && !ticket.served() && held(ticket.key.Namespace) < share {
					t.Fatalf("a slot is free and %+v waits", ticket.key)
				}
			}
		}
		end := func() bool {
			for ticket := range all {
				if ticket.served() {
					delete(all, ticket)
					s.give(ticket.key.Namespace)
					return true
				}
			}
			return false
		}
		for range rapid.IntRange(1, 80).Draw(t, "events") {
			namespace := rapid.SampledFrom(namespaces).Draw(t, "namespace")
			switch rapid.IntRange(0, 7).Draw(t, "event") {
			case 0, 1, 2, 3:
				of := Key{Priority(rapid.IntRange(0, priorities-1).Draw(t, "urgency")), namespace, rapid.SampledFrom([]string{"Web", "Database"}).Draw(t, "kind")}
				all[s.enter(of)] = true
			case 4, 5:
				end()
			case 6: // A custom resource is created or deleted.
				if uid := types.UID(namespace + " again"); s.used[uid] == "" {
					s.use(uid, namespace)
				} else {
					s.leave(uid)
				}
			case 7: // A ticket is canceled.
				for ticket := range all {
					if !ticket.served() {
						ticket.gone = true
						delete(all, ticket)
						break
					}
				}
			}
			check()
		}
		for end() {
			check()
		}
		if len(all) > 0 {
			t.Fatalf("%d tickets were never served", len(all))
		}
		for namespace, h := range s.holders {
			if h.held > 0 {
				t.Fatalf("namespace %s still holds %d slots", namespace, h.held)
			}
		}
	})
}

// TestSlots_NoTicketStarves: despite a steady flow of more urgent tickets of the same
// and of another namespace, each ticket of the lowest priority is served, in whatever
// order the slots are released.
func TestSlots_NoTicketStarves(t *testing.T) {
	for _, ends := range []string{"ab", "abbbbbbb", "bbbbbbba", "aab", "aaaaaaab"} {
		t.Run(ends, func(t *testing.T) {
			s := newSlots(2, false)
			s.use("one", "a")
			s.use("two", "b")
			holding := map[string][]*ticket{}
			come := func(namespace string) {
				holding[namespace] = append(holding[namespace], s.enter(Key{Urgent, namespace, "Web"}))
			}
			for range 3 {
				come("a")
				come("b")
			}
			starved := s.enter(Key{Background, "a", "Web"})
			for i := range 40 * len(ends) {
				namespace := string(ends[i%len(ends)])
				s.give(namespace)
				come(namespace)
				if starved.served() {
					return
				}
			}
			t.Errorf("a ticket is not served after %d others", 40*len(ends))
		})
	}
}
