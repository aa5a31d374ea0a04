package rollout

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// News is that a Line has stopped, or goes on.
type News struct {
	// Stopped tells which of the two.
	Stopped bool
	// Failed are those that keep the others waiting, by their names.
	Failed []types.NamespacedName
	// Waiting is how many others there are.
	Waiting int
}

// News tells once that the Line has stopped, as soon as somebody waits for one
// that has failed, and once that it goes on. It returns false where there is
// nothing new. A pause is no news: whoever made it knows.
func (l *Line) News() (News, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	verdict := l.verdict()
	news := News{Waiting: len(l.waiting) - len(l.let)}
	news.Stopped = verdict == Stopped && news.Waiting > 0
	if verdict == Paused || news.Stopped == l.stopped {
		return News{}, false
	}
	l.stopped = news.Stopped
	if news.Stopped {
		for _, m := range l.members {
			if m.Standing == Failed {
				news.Failed = append(news.Failed, m.Key)
			}
		}
		slices.SortFunc(news.Failed, func(a, b types.NamespacedName) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		})
	}
	return news, true
}
