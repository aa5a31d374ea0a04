package rollout

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// scope is where a rollout has stopped.
type scope int

const (
	nowhere scope = iota
	someNamespaces
	everywhere
)

// Summary reports that a rollout has stopped, or continues.
type Summary struct {
	// Stopped reports which of the two.
	Stopped bool
	// Everywhere reports whether it has stopped in all namespaces, and not only in
	// the namespaces of the failed members.
	Everywhere bool
	// Failed are the members that stop the rollout, sorted by name.
	Failed []types.NamespacedName
	// Waiting is how many members the failures hold back or, if the rollout
	// continues, how many wait.
	Waiting int
}

// Summary reports once that the rollout has stopped, as soon as a failed member
// holds others back, once more if it stops in all namespaces, and once that it
// continues. It returns false if nothing has changed. It does not report a pause,
// which a user has requested.
func (q *Queue) Summary() (Summary, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	verdict := q.verdict()
	if verdict == Paused {
		return Summary{}, false
	}
	summary := Summary{Waiting: q.withheld(verdict)}
	reached := nowhere
	switch {
	case summary.Waiting == 0:
	case verdict == Stopped:
		reached = everywhere
	default:
		reached = someNamespaces
	}
	before := q.reported
	q.reported = reached
	switch {
	case reached == nowhere && before != nowhere:
		return Summary{Waiting: q.withoutSlot()}, true
	case reached <= before:
		return Summary{}, false
	}
	summary.Stopped, summary.Everywhere = true, reached == everywhere
	for _, m := range q.members {
		if m.Position == Failed {
			summary.Failed = append(summary.Failed, m.Key)
		}
	}
	slices.SortFunc(summary.Failed, func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return summary, true
}

// withheld counts the waiting members that failures hold back.
func (q *Queue) withheld(verdict Verdict) int {
	switch {
	case verdict == Stopped:
		return q.withoutSlot()
	case len(q.failed) == 0:
		return 0
	}
	count := 0
	for _, e := range q.waiting {
		if _, has := q.slots[e.uid]; !has && q.verdictIn(e.Key.Namespace) == Stopped {
			count++
		}
	}
	return count
}

// withoutSlot counts the waiting members that have no slot.
func (q *Queue) withoutSlot() int {
	count := len(q.waiting)
	for uid := range q.slots {
		if q.members[uid].Position == Waiting {
			count--
		}
	}
	return count
}
