package rollout

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// scope is how far a Queue has stopped.
type scope int

const (
	nowhere scope = iota
	someNamespaces
	everywhere
)

// Summary reports that a Queue has stopped, or continues.
type Summary struct {
	// Stopped reports which of the two.
	Stopped bool
	// Everywhere reports whether it has stopped in all namespaces, and not only
	// in those of the failed ones.
	Everywhere bool
	// Failed are those that keep the others waiting, by their names.
	Failed []types.NamespacedName
	// Waiting is how many others there are that do not get their turn or, where
	// the Queue goes on, that wait.
	Waiting int
}

// Summary reports once that the Queue has stopped, as soon as some wait for one
// that has failed, once more when it stops in all namespaces, and once that it
// goes on. It returns false if nothing has changed. A pause is not reported:
// whoever made it knows.
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
	before := q.stopped
	q.stopped = reached
	switch {
	case reached == nowhere && before != nowhere:
		return Summary{Waiting: len(q.waiting) - len(q.let)}, true
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

// withheld counts those that wait and do not get their turn because of failures.
func (q *Queue) withheld(verdict Verdict) int {
	switch {
	case verdict == Stopped:
		return len(q.waiting) - len(q.let)
	case len(q.failed) == 0:
		return 0
	}
	count := 0
	for _, e := range q.waiting {
		if !q.let[e.uid] && q.verdictIn(e.Key.Namespace) == Stopped {
			count++
		}
	}
	return count
}
