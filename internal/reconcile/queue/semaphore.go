package queue

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Priority is the priority of an action.
type Priority int

// Priorities, the lowest first.
const (
	// Background is for actions that no user waits for: a new chart, a period.
	Background Priority = iota
	// Normal is for installs, uninstalls and retries.
	Normal
	// High is for drift correction.
	High
	// Urgent is for requests of users on a deployed release.
	Urgent

	priorities = int(Urgent) + 1
)

// Key determines the order of queued actions: by priority, then by namespace in
// rotation, then by kind in rotation.
type Key struct {
	Priority Priority
	// Namespace is that of the release. It precedes Kind, so that tenants with several
	// kinds and tenants with one kind get equally many slots.
	Namespace string
	Kind      string
}

// starvationInterval is how often a ticket of the lowest priority is served first, so
// that a steady flow of other tickets does not starve it.
const starvationInterval = 8

// slots are permits to run an action, shared by the namespaces in use. One namespace
// holds at most half of them, so that its slow actions delay no other namespace.
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
	queues  [priorities]queue
}

// holder is a namespace that holds slots or waits for them.
type holder struct {
	held, waiting int
	// granted counts the slots that the namespace got since it became a holder.
	granted int
}

// ticket is an action that waits for a slot.
type ticket struct {
	key  Key
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

// leave forgets a deleted custom resource.
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
func (s *slots) take(t Key, stop <-chan struct{}) bool {
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
		s.giveLocked(t.Namespace)
	default:
		mine.gone = true
	}
	return false
}

// enter queues a ticket, and serves it if it may get a free slot.
func (s *slots) enter(t Key) *ticket {
	s.mu.Lock()
	defer s.mu.Unlock()
	mine := &ticket{key: t, got: make(chan struct{})}
	if s.holders[t.Namespace] == nil {
		s.holders[t.Namespace] = &holder{}
	}
	s.holders[t.Namespace].waiting++
	s.queues[t.Priority].push(mine)
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

// grantLocked serves tickets while they may get free slots.
func (s *slots) grantLocked() {
	for s.free > 0 {
		next := s.next()
		if next == nil {
			return
		}
		namespace := next.key.Namespace
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

// next removes and returns the ticket to serve next, nil if no ticket may get a free
// slot.
func (s *slots) next() *ticket {
	share := s.share()
	below := func(namespace string) bool { return s.holders[namespace].held < share }
	reverse := (s.granted+1)%starvationInterval == 0
	for i := range s.queues {
		order := s.queues[nth(i, reverse)].namespaces.order
		first := slices.IndexFunc(order, below)
		if first < 0 {
			continue
		}
		namespace := order[first]
		// A namespace that holds its share whenever the lowest priority comes first would
		// starve its own tickets, so each namespace has an interval of its own.
		reverse = reverse || (s.holders[namespace].granted+1)%starvationInterval == 0
		for j := range s.queues {
			if next := s.queues[nth(j, reverse)].pop(namespace); next != nil {
				return next
			}
		}
	}
	return nil
}

// nth returns the i-th priority to serve: the highest first, or last if reversed.
func nth(i int, reverse bool) int {
	if reverse {
		return i
	}
	return priorities - 1 - i
}

// queue holds the tickets of one priority. It serves one namespace after another,
// and within a namespace one kind after another. The zero value is ready.
type queue struct {
	namespaces rotation[rotation[[]*ticket]]
}

func (q *queue) push(t *ticket) {
	tickets := q.namespaces.get(t.key.Namespace).get(t.key.Kind)
	*tickets = append(*tickets, t)
}

// pop removes and returns the next ticket of a namespace, or nil, and puts the
// namespace and the ticket's kind last.
func (q *queue) pop(namespace string) *ticket {
	kinds, found := q.namespaces.members[namespace]
	if !found {
		return nil
	}
	kind := kinds.order[0]
	tickets := kinds.members[kind]
	next := (*tickets)[0]
	*tickets = (*tickets)[1:]
	kinds.served(kind, len(*tickets) > 0)
	q.namespaces.served(namespace, len(kinds.order) > 0)
	return next
}

// rotation holds named members and their order of service. The zero
// value is ready.
type rotation[T any] struct {
	order   []string
	members map[string]*T
}

// get returns a member. It adds a missing one at the end.
func (r *rotation[T]) get(name string) *T {
	if r.members == nil {
		r.members = map[string]*T{}
	}
	if r.members[name] == nil {
		r.members[name] = new(T)
		r.order = append(r.order, name)
	}
	return r.members[name]
}

// served puts a member last, or removes it if nothing is left in it.
func (r *rotation[T]) served(name string, more bool) {
	i := slices.Index(r.order, name)
	r.order = slices.Delete(r.order, i, i+1)
	if more {
		r.order = append(r.order, name)
	} else {
		delete(r.members, name)
	}
}
