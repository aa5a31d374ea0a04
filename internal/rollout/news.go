package rollout

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// scope is how far a Line has stopped.
type scope int

const (
	nowhere scope = iota
	someNamespaces
	everywhere
)

// News is that a Line has stopped, or goes on.
type News struct {
	// Stopped reports which of the two.
	Stopped bool
	// Everywhere reports whether it has stopped in all namespaces, and not only
	// in those of the failed ones.
	Everywhere bool
	// Failed are those that keep the others waiting, by their names.
	Failed []types.NamespacedName
	// Waiting is how many others there are that do not get their turn or, where
	// the Line goes on, that wait.
	Waiting int
}

// News reports once that the Line has stopped, as soon as some wait for one
// that has failed, once more when it stops in all namespaces, and once that it
// goes on. It returns false where there is nothing new. A pause is no news:
// whoever made it knows.
func (l *Line) News() (News, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	verdict := l.verdict()
	if verdict == Paused {
		return News{}, false
	}
	news := News{Waiting: l.withheld(verdict)}
	reached := nowhere
	switch {
	case news.Waiting == 0:
	case verdict == Stopped:
		reached = everywhere
	default:
		reached = someNamespaces
	}
	before := l.stopped
	l.stopped = reached
	switch {
	case reached == nowhere && before != nowhere:
		return News{Waiting: len(l.waiting) - len(l.let)}, true
	case reached <= before:
		return News{}, false
	}
	news.Stopped, news.Everywhere = true, reached == everywhere
	for _, m := range l.members {
		if m.Standing == Failed {
			news.Failed = append(news.Failed, m.Key)
		}
	}
	slices.SortFunc(news.Failed, func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return news, true
}

// withheld counts those that wait and do not get their turn because of failures.
func (l *Line) withheld(verdict Verdict) int {
	switch {
	case verdict == Stopped:
		return len(l.waiting) - len(l.let)
	case len(l.failed) == 0:
		return 0
	}
	count := 0
	for _, e := range l.waiting {
		if !l.let[e.uid] && l.verdictIn(e.Key.Namespace) == Stopped {
			count++
		}
	}
	return count
}
