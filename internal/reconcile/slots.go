package reconcile

import (
	"sync"
)

// urgency says how soon something is to get a slot.
type urgency int

// Urgencies, the least first.
const (
	// background is what nobody waits for: a new chart, what a period asks for.
	background urgency = iota
	// usual is what somebody has begun: an install, an uninstall.
	usual
	// prompt brings back what runs.
	prompt
	// urgent is what a person has just asked for, of what runs already.
	urgent

	urgencies = int(urgent) + 1
)

// turn says when something gets a slot: the more urgent first, and among equals
// one of each flow after another, so that a flood of one holds up no other.
type turn struct {
	urgency urgency
	// flow is what may flood: a kind in a namespace.
	flow string
}

// mercy is how often the least urgent goes first, whatever else waits, so that
// it is not left out for ever.
const mercy = 8

// slots are so many permits, and those who wait for one.
type slots struct {
	mu     sync.Mutex
	free   int
	passed int
	queues [urgencies]queue
}

// queue holds those who wait, by their flow, and the flows in the order in which
// they are served.
type queue struct {
	order []string
	flows map[string][]*ticket
}

// ticket is one who waits.
type ticket struct {
	got  chan struct{}
	gone bool
}

func newSlots(n int) slots { return slots{free: n} }

// take waits for a slot. It returns false where stop was closed before.
func (s *slots) take(t turn, stop <-chan struct{}) bool {
	s.mu.Lock()
	if s.free > 0 {
		s.free--
		s.mu.Unlock()
		return true
	}
	mine := &ticket{got: make(chan struct{})}
	s.queues[t.urgency].push(t.flow, mine)
	s.mu.Unlock()
	select {
	case <-mine.got:
		return true
	case <-stop:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-mine.got:
		s.giveLocked()
	default:
		mine.gone = true
	}
	return false
}

// give gives a slot back, or to the next who waits.
func (s *slots) give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.giveLocked()
}

func (s *slots) giveLocked() {
	for {
		next := s.next()
		if next == nil {
			s.free++
			return
		}
		if !next.gone {
			close(next.got)
			return
		}
	}
}

// next takes out who is to get the next slot, nil where nobody waits.
func (s *slots) next() *ticket {
	s.passed++
	for i := range s.queues {
		at := urgencies - 1 - i
		if s.passed%mercy == 0 {
			at = i
		}
		if next := s.queues[at].pop(); next != nil {
			return next
		}
	}
	return nil
}

func (q *queue) push(flow string, t *ticket) {
	if q.flows == nil {
		q.flows = map[string][]*ticket{}
	}
	if len(q.flows[flow]) == 0 {
		q.order = append(q.order, flow)
	}
	q.flows[flow] = append(q.flows[flow], t)
}

// pop takes the first of the flow whose turn it is, and puts the flow last.
func (q *queue) pop() *ticket {
	if len(q.order) == 0 {
		return nil
	}
	flow := q.order[0]
	q.order = q.order[1:]
	waiting := q.flows[flow]
	first := waiting[0]
	if len(waiting) > 1 {
		q.flows[flow] = waiting[1:]
		q.order = append(q.order, flow)
	} else {
		delete(q.flows, flow)
	}
	return first
}
