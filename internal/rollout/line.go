package rollout

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Standing is where a custom resource stands.
type Standing string

// Standings.
const (
	// Aside has no part in it: it is held or paused, goes, or cannot be upgraded.
	Aside Standing = "aside"
	// Done runs the new chart.
	Done Standing = "done"
	// Moving is being upgraded, or was and is not ready yet.
	Moving Standing = "moving"
	// Failed could not be upgraded, or is not ready though it should be.
	Failed Standing = "failed"
	// Waiting is to be upgraded when its turn comes.
	Waiting Standing = "waiting"
)

// Member is what a Line knows of a custom resource.
type Member struct {
	Key      types.NamespacedName
	Standing Standing
	// Ailing: it was not ready before. Those come last, so that what was broken
	// anyway stops nobody.
	Ailing bool
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

// Turn is a verdict with the place in the line, from 1, of so many that take
// part. Those that were upgraded keep theirs, so that a place stays what it is
// while others go.
type Turn struct {
	Verdict   Verdict
	Place, Of int
}

// Line is the line of one kind. Its methods may be called concurrently.
type Line struct {
	mu   sync.Mutex
	most int
	// stopAfter is the number of namespaces with failures at which all stop.
	stopAfter int
	paused    bool
	unseen    map[types.UID]bool
	members   map[types.UID]Member
	counts    map[Standing]int
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
	// stopped is what News has reported last.
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

// NewLine returns a Line that keeps to the limits, and gives no answer before
// it has seen all that are expected.
func NewLine(limits Limits, expected []types.UID) *Line {
	l := &Line{
		most: limits.MaxConcurrent, stopAfter: limits.StopAfterNamespaces,
		unseen: map[types.UID]bool{}, members: map[types.UID]Member{}, counts: map[Standing]int{}, let: map[types.UID]bool{},
		failed: map[string]int{}, toldIn: map[string]bool{},
	}
	for _, uid := range expected {
		l.unseen[uid] = true
	}
	return l
}

// Expect has the Line wait for others, of whom nothing was known before.
func (l *Line) Expect(others []types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, uid := range others {
		if _, known := l.members[uid]; !known {
			l.unseen[uid] = true
			// Whoever asks meanwhile is to be named when it was seen.
			l.told = Unknown
		}
	}
}

// Pause stops the Line, or lets it go on. It returns those to look at again.
func (l *Line) Pause(paused bool) []types.NamespacedName {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paused = paused
	return l.next()
}

// Put notes how a custom resource stands, and returns those to look at again.
func (l *Line) Put(uid types.UID, m Member) []types.NamespacedName {
	l.mu.Lock()
	defer l.mu.Unlock()
	if before, known := l.members[uid]; known && before == m {
		return nil
	}
	l.drop(uid)
	l.members[uid] = m
	l.counts[m.Standing]++
	if m.Standing == Failed {
		l.failed[m.Key.Namespace]++
	}
	if m.Standing == Waiting {
		e := entry{m, uid}
		at, _ := slices.BinarySearchFunc(l.waiting, e, compare)
		l.waiting = slices.Insert(l.waiting, at, e)
	} else {
		delete(l.let, uid)
	}
	return l.next()
}

// Forget drops a custom resource that is gone, and returns those to look at
// again.
func (l *Line) Forget(uid types.UID) []types.NamespacedName {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(uid)
	delete(l.let, uid)
	return l.next()
}

// drop takes a custom resource out; that it was let go is not forgotten.
func (l *Line) drop(uid types.UID) {
	delete(l.unseen, uid)
	m, known := l.members[uid]
	if !known {
		return
	}
	delete(l.members, uid)
	l.counts[m.Standing]--
	if m.Standing == Failed {
		l.failed[m.Key.Namespace]--
		if l.failed[m.Key.Namespace] == 0 {
			delete(l.failed, m.Key.Namespace)
		}
	}
	if at, found := slices.BinarySearchFunc(l.waiting, entry{m, uid}, compare); found && m.Standing == Waiting {
		l.waiting = slices.Delete(l.waiting, at, at+1)
	}
}

// Turn answers one that waits. One that was told to go is counted as moving
// from then on.
func (l *Line) Turn(uid types.UID) Turn {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.members[uid]
	verdict := l.verdictIn(m.Key.Namespace)
	if m.Standing != Waiting || l.let[uid] {
		return Turn{Verdict: Go}
	}
	at, _ := slices.BinarySearchFunc(l.waiting, entry{m, uid}, compare)
	if verdict == Wait {
		room := l.room()
		for _, other := range l.waiting[:at] {
			if room <= 0 {
				break
			}
			if l.eligible(other) {
				room--
			}
		}
		if room > 0 {
			l.let[uid] = true
			return Turn{Verdict: Go}
		}
	}
	gone := l.counts[Done] + l.counts[Moving] + l.counts[Failed]
	return Turn{Verdict: verdict, Place: gone + at + 1, Of: gone + len(l.waiting)}
}

// verdict is the answer for all namespaces without failures.
func (l *Line) verdict() Verdict {
	switch {
	case len(l.unseen) > 0:
		return Unknown
	case l.paused:
		return Paused
	case len(l.failed) >= l.stopAfter:
		return Stopped
	default:
		return Wait
	}
}

// verdictIn is the answer for one namespace.
func (l *Line) verdictIn(namespace string) Verdict {
	verdict := l.verdict()
	if verdict == Wait && l.failed[namespace] > 0 {
		return Stopped
	}
	return verdict
}

// eligible reports whether one that waits gets its turn when there is room.
func (l *Line) eligible(e entry) bool {
	return !l.let[e.uid] && l.verdictIn(e.Key.Namespace) == Wait
}

// room is how many more may go.
func (l *Line) room() int { return l.most - l.counts[Moving] - len(l.let) }

// next returns those that wait and whose answer has changed, and as many as may
// go now.
func (l *Line) next() []types.NamespacedName {
	verdict := l.verdict()
	changed := verdict != l.told
	l.told = verdict
	changedIn := l.changedIn(verdict)
	if verdict == Unknown {
		return nil
	}
	room := l.room()
	var keys []types.NamespacedName
	for _, e := range l.waiting {
		if room <= 0 && !changed && len(changedIn) == 0 {
			break
		}
		if l.let[e.uid] {
			continue
		}
		goes := room > 0 && l.eligible(e)
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
func (l *Line) changedIn(verdict Verdict) map[string]bool {
	changed := map[string]bool{}
	for namespace := range l.toldIn {
		if verdict != Wait || l.failed[namespace] == 0 {
			changed[namespace] = true
			delete(l.toldIn, namespace)
		}
	}
	if verdict != Wait {
		return changed
	}
	for namespace := range l.failed {
		if !l.toldIn[namespace] {
			changed[namespace] = true
			l.toldIn[namespace] = true
		}
	}
	return changed
}

// compare puts the ailing last, and orders the others by their names.
func compare(a, b entry) int {
	if a.Ailing != b.Ailing {
		if a.Ailing {
			return 1
		}
		return -1
	}
	return cmp.Or(
		cmp.Compare(a.Key.Namespace, b.Key.Namespace), cmp.Compare(a.Key.Name, b.Key.Name), cmp.Compare(a.uid, b.uid),
	)
}

// Standings counts custom resources by where they stand.
func (l *Line) Standings() map[Standing]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts := maps.Clone(l.counts)
	counts[Waiting] -= len(l.let)
	counts[Moving] += len(l.let)
	return counts
}
