package rollout

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Position is the position of a custom resource in a rollout.
type Position string

// The positions.
const (
	// Skipped takes no part in the rollout: it is held, paused or being deleted, or it
	// cannot be upgraded.
	Skipped Position = "skipped"
	// Done runs the new chart.
	Done Position = "done"
	// Moving is being upgraded, or is upgraded and not ready yet.
	Moving Position = "moving"
	// Failed could not be upgraded, or did not become ready in time.
	Failed Position = "failed"
	// Waiting needs an upgrade and has not been admitted yet.
	Waiting Position = "waiting"
)

// Member is what a Queue knows of a custom resource.
type Member struct {
	Key      types.NamespacedName
	Position Position
	// Unhealthy reports that it was not ready before its upgrade. Unhealthy members
	// come last, because an upgrade that fails on them would stop the others.
	Unhealthy bool
	// Blocked reports that it waits for an approval: it is Waiting, but others do not wait
	// for it.
	Blocked bool
	// Edited reports that a user's edit moves it, with the upgrade or after it: it is Moving,
	// but others do not wait for it.
	Edited bool
}

// Verdict reports whether a waiting custom resource may be upgraded.
type Verdict string

// Verdicts.
const (
	// Unknown: the Queue does not know all custom resources yet. Those that asked are
	// returned as soon as it does.
	Unknown Verdict = ""
	// Go: it may be upgraded now.
	Go Verdict = "go"
	// Wait: others come first.
	Wait Verdict = "wait"
	// Stopped: an upgrade has failed in the same namespace, or upgrades have failed in
	// so many namespaces that the whole rollout has stopped.
	Stopped Verdict = "stopped"
	// Paused: a user has paused the rollout.
	Paused Verdict = "paused"
)

// Turn is a verdict with the place in the queue, counted from 1, out of Of. Members
// that were upgraded keep their places, so that the other places do not change.
type Turn struct {
	Verdict   Verdict
	Place, Of int
}

// Queue is the queue of one kind. Its methods may be called concurrently.
type Queue struct {
	mu     sync.Mutex
	limits Limits
	paused bool
	// unseen are the expected custom resources that have no Member yet.
	unseen  map[types.UID]bool
	members map[types.UID]Member
	counts  map[Position]int
	// waiting are the waiting members in order.
	waiting []entry
	// slots holds the namespaces of the members that count for MaxConcurrent, and held
	// their number in each namespace: those that got the verdict Go, and those that began to
	// move without it (before this process started, or again after an interruption), until
	// they have moved or were edited. A member that moves because of a user's edit takes no
	// slot from others.
	slots map[types.UID]string
	held  map[string]int
	// failed counts the failed members of each namespace that has some.
	failed map[string]int
	// lastVerdict is the verdict at the last change, and stoppedIn holds the stopped
	// namespaces at that time.
	lastVerdict Verdict
	stoppedIn   map[string]bool
	// reported is what Summary has last reported.
	reported scope
}

// entry is a Member with its UID.
type entry struct {
	Member
	uid types.UID
}

// Limits are the number of concurrent upgrades, and the number of failures that
// stop the rollout.
type Limits struct {
	// MaxConcurrent is how many members the Queue moves at a time, at least 1. A namespace
	// gets more than half only if no other needs it.
	MaxConcurrent int
	// StopAfterNamespaces is the number of namespaces with a failed upgrade at which
	// the rollout stops in all namespaces, at least 1. Below it, the rollout stops
	// only in the namespaces with failures, so that a tenant cannot withhold a chart
	// from other tenants.
	StopAfterNamespaces int
}

// NewQueue returns a Queue whose verdict is Unknown until it has a Member for each
// of the expected custom resources.
func NewQueue(limits Limits, expected []types.UID) *Queue {
	q := &Queue{
		limits: limits, unseen: map[types.UID]bool{}, members: map[types.UID]Member{}, counts: map[Position]int{},
		slots: map[types.UID]string{}, held: map[string]int{}, failed: map[string]int{}, stoppedIn: map[string]bool{},
	}
	for _, uid := range expected {
		q.unseen[uid] = true
	}
	return q
}

// Expect adds custom resources to the expected ones.
func (q *Queue) Expect(others []types.UID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, uid := range others {
		if _, known := q.members[uid]; !known {
			q.unseen[uid] = true
			// The waiting members are returned again when it is known.
			q.lastVerdict = Unknown
		}
	}
}

// Pause pauses or resumes the rollout, and returns the custom resources to reconcile.
func (q *Queue) Pause(paused bool) []types.NamespacedName {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.paused = paused
	return q.next()
}

// Upsert adds or updates a custom resource, and returns the custom resources to
// reconcile.
func (q *Queue) Upsert(uid types.UID, m Member) []types.NamespacedName {
	q.mu.Lock()
	defer q.mu.Unlock()
	before, known := q.members[uid]
	if known && before == m {
		return nil
	}
	q.drop(uid)
	q.members[uid] = m
	q.counts[m.Position]++
	if m.Position == Failed {
		q.failed[m.Key.Namespace]++
	}
	switch {
	case m.Position == Waiting && !m.Blocked:
		e := entry{m, uid}
		at, _ := slices.BinarySearchFunc(q.waiting, e, compare)
		q.waiting = slices.Insert(q.waiting, at, e)
	case m.Position != Moving, m.Edited:
		q.release(uid)
	case before.Position != Moving:
		q.take(uid, m.Key.Namespace)
	}
	return q.next()
}

func (q *Queue) take(uid types.UID, namespace string) {
	if _, has := q.slots[uid]; has {
		return
	}
	q.slots[uid] = namespace
	q.held[namespace]++
}

func (q *Queue) release(uid types.UID) {
	namespace, has := q.slots[uid]
	if !has {
		return
	}
	delete(q.slots, uid)
	q.held[namespace]--
	if q.held[namespace] == 0 {
		delete(q.held, namespace)
	}
}

// Forget removes a custom resource, and returns the custom resources to reconcile.
func (q *Queue) Forget(uid types.UID) []types.NamespacedName {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.drop(uid)
	q.release(uid)
	return q.next()
}

// drop removes a custom resource, but not its slot.
func (q *Queue) drop(uid types.UID) {
	delete(q.unseen, uid)
	m, known := q.members[uid]
	if !known {
		return
	}
	delete(q.members, uid)
	q.counts[m.Position]--
	if m.Position == Failed {
		q.failed[m.Key.Namespace]--
		if q.failed[m.Key.Namespace] == 0 {
			delete(q.failed, m.Key.Namespace)
		}
	}
	if at, found := slices.BinarySearchFunc(q.waiting, entry{m, uid}, compare); found && m.Position == Waiting {
		q.waiting = slices.Delete(q.waiting, at, at+1)
	}
}

// Turn returns the verdict on a waiting custom resource. After the verdict Go, the
// custom resource counts as moving.
func (q *Queue) Turn(uid types.UID) Turn {
	q.mu.Lock()
	defer q.mu.Unlock()
	m := q.members[uid]
	verdict := q.verdictIn(m.Key.Namespace)
	if _, has := q.slots[uid]; has || m.Position != Waiting {
		return Turn{Verdict: Go}
	}
	at, _ := slices.BinarySearchFunc(q.waiting, entry{m, uid}, compare)
	if verdict == Wait && q.choose()[uid] {
		q.take(uid, m.Key.Namespace)
		return Turn{Verdict: Go}
	}
	past := q.counts[Done] + q.counts[Moving] + q.counts[Failed]
	return Turn{Verdict: verdict, Place: past + at + 1, Of: past + len(q.waiting)}
}

// verdict is the verdict in all namespaces without failures.
func (q *Queue) verdict() Verdict {
	switch {
	case len(q.unseen) > 0:
		return Unknown
	case q.paused:
		return Paused
	case len(q.failed) >= q.limits.StopAfterNamespaces:
		return Stopped
	default:
		return Wait
	}
}

// verdictIn is the verdict in one namespace.
func (q *Queue) verdictIn(namespace string) Verdict {
	verdict := q.verdict()
	if verdict == Wait && q.failed[namespace] > 0 {
		return Stopped
	}
	return verdict
}

// choose returns the waiting members that may get a slot now. The first pass gives no
// namespace more than half of the slots, and the second one what is left.
func (q *Queue) choose() map[types.UID]bool {
	chosen := map[types.UID]bool{}
	room, share := max(0, q.limits.MaxConcurrent-len(q.slots)), (q.limits.MaxConcurrent+1)/2
	held := maps.Clone(q.held)
	var rest []types.UID
	for _, e := range q.waiting {
		if len(chosen) >= room {
			return chosen
		}
		_, has := q.slots[e.uid]
		switch {
		case has || q.verdictIn(e.Key.Namespace) != Wait:
		case held[e.Key.Namespace] < share:
			chosen[e.uid] = true
			held[e.Key.Namespace]++
		default:
			rest = append(rest, e.uid)
		}
	}
	for _, uid := range rest[:min(len(rest), room-len(chosen))] {
		chosen[uid] = true
	}
	return chosen
}

// next returns the waiting members whose verdict has changed, and as many as may be
// admitted now.
func (q *Queue) next() []types.NamespacedName {
	verdict := q.verdict()
	changed := verdict != q.lastVerdict
	q.lastVerdict = verdict
	changedIn := q.changedIn(verdict)
	if verdict == Unknown {
		return nil
	}
	chosen := q.choose()
	if len(chosen) == 0 && !changed && len(changedIn) == 0 {
		return nil
	}
	var keys []types.NamespacedName
	for _, e := range q.waiting {
		if _, has := q.slots[e.uid]; !has && (chosen[e.uid] || changed || changedIn[e.Key.Namespace]) {
			keys = append(keys, e.Key)
		}
	}
	return keys
}

// changedIn returns the namespaces where the rollout has stopped or continued since
// the last call.
func (q *Queue) changedIn(verdict Verdict) map[string]bool {
	changed := map[string]bool{}
	for namespace := range q.stoppedIn {
		if verdict != Wait || q.failed[namespace] == 0 {
			changed[namespace] = true
			delete(q.stoppedIn, namespace)
		}
	}
	if verdict != Wait {
		return changed
	}
	for namespace := range q.failed {
		if !q.stoppedIn[namespace] {
			changed[namespace] = true
			q.stoppedIn[namespace] = true
		}
	}
	return changed
}

// compare orders by namespace and name, and puts unhealthy members last.
func compare(a, b entry) int {
	if a.Unhealthy != b.Unhealthy {
		if a.Unhealthy {
			return 1
		}
		return -1
	}
	return cmp.Or(
		cmp.Compare(a.Key.Namespace, b.Key.Namespace), cmp.Compare(a.Key.Name, b.Key.Name), cmp.Compare(a.uid, b.uid),
	)
}

// Positions counts the custom resources in each position.
func (q *Queue) Positions() map[Position]int {
	q.mu.Lock()
	defer q.mu.Unlock()
	counts := maps.Clone(q.counts)
	admitted := len(q.waiting) - q.withoutSlot()
	counts[Waiting] -= admitted
	counts[Moving] += admitted
	return counts
}
