package reconcile

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// urgency is how soon an action gets a slot.
type urgency int

// Urgencies, the least first.
const (
	// background is for actions that no user waits for: a new chart, a period.
	background urgency = iota
	// usual is for installs, uninstalls and retries.
	usual
	// prompt is for drift correction.
	prompt
	// urgent is for what a user has just requested of a release that runs.
	urgent

	urgencies = int(urgent) + 1
)

// turn says when an action gets a slot: the most urgent first. Among equals each
// namespace gets one after another, and within a namespace each kind.
type turn struct {
	urgency urgency
	// namespace is that of the release. A tenant with several kinds gets no more
	// slots than a tenant with one kind.
	namespace string
	kind      string
}

// mercy is how often the least urgent ticket goes first, so that it is served in
// spite of a steady flow of urgent ones.
const mercy = 8

// slots are permits to run an action. The namespaces in use share them: one of
// them holds at most half, so that slow actions in it delay no other namespace.
type slots struct {
	mu   sync.Mutex
	size int
	free int
	// single reports that the operator watches one namespace, which may hold every
	// slot.
	single bool
	// holders are the namespaces that hold slots or wait for them.
	holders map[string]*holder
	// used is the namespace of each custom resource, and using counts the custom
	// resources in each namespace.
	used    map[types.UID]string
	using   map[string]int
	granted int
	queues  [urgencies]queue
}

// holder is a namespace that holds slots or waits for them.
type holder struct {
	held, waiting int
	// granted counts the slots that it got since it became a holder.
	granted int
}

// ticket is an action that waits for a slot.
type ticket struct {
	turn turn
	got  chan struct{}
	gone bool
}

func newSlots(size int, single bool) slots {
	return slots{
		size: size, free: size, single: single,
		holders: map[string]*holder{}, used: map[types.UID]string{}, using: map[string]int{},
	}
}

// use notes the namespace of the release of a custom resource.
func (s *slots) use(uid types.UID, namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before, known := s.used[uid]; known {
		if before == namespace {
			return
		}
		s.leaveLocked(uid)
	}
	s.used[uid] = namespace
	s.using[namespace]++
	s.grantLocked()
}

// leave forgets a custom resource, which is gone.
func (s *slots) leave(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaveLocked(uid)
	s.grantLocked()
}

func (s *slots) leaveLocked(uid types.UID) {
	namespace, known := s.used[uid]
	if !known {
		return
	}
	delete(s.used, uid)
	s.using[namespace]--
	if s.using[namespace] == 0 {
		delete(s.using, namespace)
	}
}

// share is how many slots one namespace may hold. While no other namespace has
// custom resources, one slot stays free for the first of another namespace.
func (s *slots) share() int {
	switch {
	case s.single:
		return s.size
	case len(s.using) < 2:
		return max(1, s.size-1)
	default:
		return max(1, s.size/2)
	}
}

// take waits for a slot. It returns false if stop was closed before.
func (s *slots) take(t turn, stop <-chan struct{}) bool {
	mine := s.enter(t)
	select {
	case <-mine.got:
		return true
	case <-stop:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-mine.got:
		s.giveLocked(t.namespace)
	default:
		mine.gone = true
	}
	return false
}

// enter queues a ticket, and serves it if a slot is free for it.
func (s *slots) enter(t turn) *ticket {
	s.mu.Lock()
	defer s.mu.Unlock()
	mine := &ticket{turn: t, got: make(chan struct{})}
	if s.holders[t.namespace] == nil {
		s.holders[t.namespace] = &holder{}
	}
	s.holders[t.namespace].waiting++
	s.queues[t.urgency].push(mine)
	s.grantLocked()
	return mine
}

// give returns a slot that an action of a namespace held.
func (s *slots) give(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.giveLocked(namespace)
}

func (s *slots) giveLocked(namespace string) {
	s.free++
	s.holders[namespace].held--
	s.tidyLocked(namespace)
	s.grantLocked()
}

// tidyLocked forgets a namespace that neither holds a slot nor waits for one.
func (s *slots) tidyLocked(namespace string) {
	if h := s.holders[namespace]; h.held == 0 && h.waiting == 0 {
		delete(s.holders, namespace)
	}
}

// grantLocked serves tickets while slots are free for them.
func (s *slots) grantLocked() {
	for s.free > 0 {
		next := s.next()
		if next == nil {
			return
		}
		namespace := next.turn.namespace
		s.holders[namespace].waiting--
		if next.gone {
			s.tidyLocked(namespace)
			continue
		}
		s.free--
		s.holders[namespace].held++
		s.holders[namespace].granted++
		s.granted++
		close(next.got)
	}
}

// next removes the ticket to be served next, and returns nil if there is none
// that a free slot is for.
func (s *slots) next() *ticket {
	share := s.share()
	below := func(namespace string) bool { return s.holders[namespace].held < share }
	reverse := (s.granted+1)%mercy == 0
	for i := range s.queues {
		namespace, found := s.queues[nth(i, reverse)].first(below)
		if !found {
			continue
		}
		// A namespace at its share may miss each turn of mercy of all. So it has
		// turns of its own.
		reverse = reverse || (s.holders[namespace].granted+1)%mercy == 0
		for j := range s.queues {
			if next := s.queues[nth(j, reverse)].pop(namespace); next != nil {
				return next
			}
		}
	}
	return nil
}

// nth returns the i-th urgency to serve: the most urgent first, or last.
func nth(i int, reverse bool) int {
	if reverse {
		return i
	}
	return urgencies - 1 - i
}
