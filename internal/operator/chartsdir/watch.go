package chartsdir

import (
	"context"
	"time"

	"github.com/fsnotify/fsnotify"
	"k8s.io/apimachinery/pkg/util/sets"
)

const (
	// pollInterval is how often sizes and times of all files are compared, because network
	// file systems report no events.
	pollInterval = 3 * time.Second
	// burstTime is how long events are collected, because copying a chart causes many.
	burstTime = 200 * time.Millisecond
)

// watcher waits for changes of files.
type watcher struct {
	// events is nil if the system reports no events. Then only the poll detects changes.
	events *fsnotify.Watcher
}

func newWatcher(dir string) *watcher {
	events, err := fsnotify.NewWatcher()
	if err != nil {
		return &watcher{}
	}
	w := &watcher{events: events}
	w.watch([]string{dir})
	return w
}

func (w *watcher) close() {
	if w.events != nil {
		_ = w.events.Close()
	}
}

// watch replaces the watched folders.
func (w *watcher) watch(folders []string) {
	if w.events == nil {
		return
	}
	known, wanted := sets.New(w.events.WatchList()...), sets.New(folders...)
	for folder := range known.Difference(wanted) {
		_ = w.events.Remove(folder)
	}
	for folder := range wanted.Difference(known) {
		// The poll detects changes of a folder that cannot be watched.
		_ = w.events.Add(folder)
	}
}

// wait waits for a change, for the poll, or until the given time has passed, unless that is
// 0. It returns false if the context ended first.
func (w *watcher) wait(ctx context.Context, at time.Duration) bool {
	if at == 0 || at > pollInterval {
		at = pollInterval
	}
	timeout := time.After(at)
	var events <-chan fsnotify.Event
	// An error, such as an overflow of the queue, means that events were lost.
	var lost <-chan error
	if w.events != nil {
		events, lost = w.events.Events, w.events.Errors
	}
	select {
	case <-ctx.Done():
		return false
	case <-timeout:
		return true
	case <-events:
	case err := <-lost:
		_ = err
	}
	burst := time.After(burstTime)
	for {
		select {
		case <-ctx.Done():
			return false
		case <-events:
		case err := <-lost:
			_ = err
		case <-burst:
			return true
		}
	}
}
