package rollout

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Position is where a custom resource is in a rollout.
type Position string

// The positions.
const (
	// Skipped has no part in it: it is held or paused, goes, or cannot be upgraded.
	Skipped Position = "aside"
	// Done runs the new chart.
	Done Position = "done"
	// Moving is being upgraded, or was and is not ready yet.
	Moving Position = "moving"
	// Failed could not be upgraded, or is not ready though it should be.
	Failed Position = "failed"
	// Waiting is to be upgraded when its turn comes.
	Waiting Position = "waiting"
)

// Member is what a Queue knows of a custom resource.
type Member struct {
	Key      types.NamespacedName
	Position Position
	// Unhealthy: it was not ready before. Those come last, so that what was broken
	// anyway stops nobody.
	Unhealthy bool
}

// Verdict is the answer to one that waits.
type Verdict string

// Verdicts.
const (
	// Unknown: not all were seen yet. Whoever waits is named when they were.
	Unknown Verdict = ""
	// Go: it is to be upgraded now.
	Go Verdict = "go"
	// Wait: others are before it.
	Wait Verdict = "wait"
	// Stopped: an upgrade has failed in the same namespace, or upgrades have
	// failed in so many namespaces that none is upgraded.
	Stopped Verdict = "stopped"
	// Paused: a person has stopped the rollout.
	Paused Verdict = "paused"
)

// Turn is a verdict with the place in the queue, from 1, of so many that take
// part. Those that were upgraded keep theirs, so that a place stays what it is
// while others go.
type Turn struct {
	Verdict   Verdict
	Place, Of int
}

// Queue is the queue of one kind. Its methods may be called concurrently.
type Queue struct {
	mu   sync.Mutex
	most int
	// stopAfter is the number of namespaces with failures at which all stop.
	stopAfter int
	paused    bool
	unseen    map[types.UID]bool
	members   map[types.UID]Member
	counts    map[Position]int
	// waiting are those that wait, in their order; let those of them that were
	// told to go.
	waiting []entry
	let     map[types.UID]bool
	// failed counts the failed members of each namespace that has some.
	failed map[string]int
	// told is the verdict of which those that wait were last told, and toldIn
	// holds the namespaces in which they were told Stopped.
	told   Verdict
	toldIn map[string]bool
	// stopped is what Summary has reported last.
	stopped scope
}

// entry is a Member in the order.
type entry struct {
	Member
	uid types.UID
}

// Limits say how many custom resources are upgraded at a time, and when the
// rollout stops.
type Limits struct {
	// MaxConcurrent is how many may be Moving at a time, at least 1.
	MaxConcurrent int
	// StopAfterNamespaces is the number of namespaces with a failed upgrade at
	// which the rollout stops in all namespaces, at least 1. Below it, it stops
	// in the namespaces with failures, so that one tenant cannot withhold a
	// chart from the others.
	StopAfterNamespaces int
}

// NewQueue returns a Queue that keeps to the limits, and gives no answer before
// it has seen all that are expected.
func NewQueue(limits Limits, expected []types.UID) *Queue {
	q := &Queue{
		most: limits.MaxConcurrent, stopAfter: limits.StopAfterNamespaces,
		unseen: map[types.UID]bool{}, members: map[types.UID]Member{}, counts: map[Position]int{}, let: map[types.UID]bool{},
		failed: map[string]int{}, toldIn: map[string]bool{},
	}
	for _, uid := range expected {
		q.unseen[uid] = true
	}
	return q
}

// Expect has the Queue wait for others, of whom nothing was known before.
func (q *Queue) Expect(others []types.UID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, uid := range others {
		if _, known := q.members[uid]; !known {
			q.unseen[uid] = true
			// Whoever asks meanwhile is to be named when it was seen.
			q.told = Unknown
		}
	}
}

// Pause stops the Queue, or lets it go on. It returns those to look at again.
func (q *Queue) Pause(paused bool) []types.NamespacedName {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.paused = paused
	return q.next()
}

// Upsert adds a custom resource or updates its position, and returns those to look
// at again.
func (q *Queue) Upsert(uid types.UID, m Member) []types.NamespacedName {
	q.mu.Lock()
	defer q.mu.Unlock()
	if before, known := q.members[uid]; known && before == m {
		return nil
	}
	q.drop(uid)
	q.members[uid] = m
	q.counts[m.Position]++
	if m.Position == Failed {
		q.failed[m.Key.Namespace]++
	}
	if m.Position == Waiting {
		e := entry{m, uid}
		at, _ := slices.BinarySearchFunc(q.waiting, e, compare)
		q.waiting = slices.Insert(q.waiting, at, e)
	} else {
		delete(q.let, uid)
	}
	return q.next()
}

// Forget drops a custom resource that is gone, and returns those to look at
// again.
func (q *Queue) Forget(uid types.UID) []types.NamespacedName {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.drop(uid)
	delete(q.let, uid)
	return q.next()
}

// drop takes a custom resource out; that it was let go is not forgotten.
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

// Turn answers one that waits. One that was told to go is counted as moving
// from then on.
func (q *Queue) Turn(uid types.UID) Turn {
	q.mu.Lock()
	defer q.mu.Unlock()
	m := q.members[uid]
	verdict := q.verdictIn(m.Key.Namespace)
	if m.Position != Waiting || q.let[uid] {
		return Turn{Verdict: Go}
	}
	at, _ := slices.BinarySearchFunc(q.waiting, entry{m, uid}, compare)
	if verdict == Wait {
		room := q.room()
		for _, other := range q.waiting[:at] {
			if room <= 0 {
				break
			}
			if q.eligible(other) {
				room--
			}
		}
		if room > 0 {
			q.let[uid] = true
			return Turn{Verdict: Go}
		}
	}
	gone := q.counts[Done] + q.counts[Moving] + q.counts[Failed]
	return Turn{Verdict: verdict, Place: gone + at + 1, Of: gone + len(q.waiting)}
}

// verdict is the answer for all namespaces without failures.
func (q *Queue) verdict() Verdict {
	switch {
	case len(q.unseen) > 0:
		return Unknown
	case q.paused:
		return Paused
	case len(q.failed) >= q.stopAfter:
		return Stopped
	default:
		return Wait
	}
}

// verdictIn is the answer for one namespace.
func (q *Queue) verdictIn(namespace string) Verdict {
	verdict := q.verdict()
	if verdict == Wait && q.failed[namespace] > 0 {
		return Stopped
	}
	return verdict
}

// eligible reports whether one that waits gets its turn when there is room.
func (q *Queue) eligible(e entry) bool {
	return !q.let[e.uid] && q.verdictIn(e.Key.Namespace) == Wait
}

// room is how many more may go.
func (q *Queue) room() int { return q.most - q.counts[Moving] - len(q.let) }

// next returns those that wait and whose answer has changed, and as many as may
// go now.
func (q *Queue) next() []types.NamespacedName {
	verdict := q.verdict()
	changed := verdict != q.told
	q.told = verdict
	changedIn := q.changedIn(verdict)
	if verdict == Unknown {
		return nil
	}
	room := q.room()
	var keys []types.NamespacedName
	for _, e := range q.waiting {
		if room <= 0 && !changed && len(changedIn) == 0 {
			break
		}
		if q.let[e.uid] {
			continue
		}
		goes := room > 0 && q.eligible(e)
		if goes {
			room--
		}
		if goes || changed || changedIn[e.Key.Namespace] {
			keys = append(keys, e.Key)
		}
	}
	return keys
}

// changedIn returns the namespaces that stop or no longer stop by themselves
// since the last call.
func (q *Queue) changedIn(verdict Verdict) map[string]bool {
	changed := map[string]bool{}
	for namespace := range q.toldIn {
		if verdict != Wait || q.failed[namespace] == 0 {
			changed[namespace] = true
			delete(q.toldIn, namespace)
		}
	}
	if verdict != Wait {
		return changed
	}
	for namespace := range q.failed {
		if !q.toldIn[namespace] {
			changed[namespace] = true
			q.toldIn[namespace] = true
		}
	}
	return changed
}

// compare puts the unhealthy last, and orders the others by their names.
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

// Positions counts custom resources by where they stand.
func (q *Queue) Positions() map[Position]int {
	q.mu.Lock()
	defer q.mu.Unlock()
	counts := maps.Clone(q.counts)
	counts[Waiting] -= len(q.let)
	counts[Moving] += len(q.let)
	return counts
}
