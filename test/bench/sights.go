package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// sight is what was last seen of a custom resource.
type sight struct {
	// generation is that of the spec, and served that of the newest spec that
	// was ever seen to be done, by any of its charts.
	generation, served int64
	// at is when served was seen first.
	at time.Time
	// chart is the version that runs, where the operator tells, and ready that
	// all is done now.
	chart       string
	ready, gone bool
}

// sights watches all custom resources, by one request.
type sights struct {
	mu     sync.Mutex
	seen   map[name]sight
	awaits map[*await]bool
	failed error
}

// await is a wait for custom resources to satisfy a condition.
type await struct {
	left map[name]bool
	want func(name, sight) bool
	// done is closed when none is left, with last the time of the last.
	done chan struct{}
	last time.Time
}

// newSights begins to watch; until the context ends.
func newSights(ctx context.Context, client dynamic.Interface) *sights {
	s := &sights{seen: map[name]sight{}, awaits: map[*await]bool{}}
	go func() {
		err := watchAll(ctx, client, func(cr *unstructured.Unstructured, gone bool) { s.note(cr, gone, time.Now()) })
		s.end(err)
	}()
	return s
}

func (s *sights) note(cr *unstructured.Unstructured, gone bool, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	about := name{cr.GetNamespace(), cr.GetName()}
	now := s.seen[about].next(cr, gone, at)
	s.seen[about] = now
	if gone {
		// A later one of the name begins anew.
		defer delete(s.seen, about)
	}
	for a := range s.awaits {
		if a.left[about] && a.want(about, now) {
			delete(a.left, about)
			a.last = at
			if len(a.left) == 0 {
				close(a.done)
				delete(s.awaits, a)
			}
		}
	}
}

// next is what is known of a custom resource after it was seen again.
func (s sight) next(cr *unstructured.Unstructured, gone bool, at time.Time) sight {
	s.generation, s.gone, s.chart, s.ready = cr.GetGeneration(), gone, chartOf(cr), isDone(cr)
	if s.ready && s.served < s.generation {
		s.served, s.at = s.generation, at
	}
	return s
}

// isDone tells whether the operator has done what the spec asks for. Most say
// so by the condition Ready for a generation; those of the operator-sdk tell
// the manifest that is deployed.
func isDone(cr *unstructured.Unstructured) bool {
	if observed, found, err := unstructured.NestedInt64(cr.Object, "status", "observedGeneration"); found && err == nil {
		return observed == cr.GetGeneration() && conditionTrue(cr, "Ready")
	}
	message, _, _ := unstructured.NestedString(cr.Object, "spec", "message")
	return conditionTrue(cr, "Deployed") && strings.Contains(manifestOf(cr), message)
}

func manifestOf(cr *unstructured.Unstructured) string {
	manifest, _, _ := unstructured.NestedString(cr.Object, "status", "deployedRelease", "manifest")
	return manifest
}

// chartOf returns the version of the chart that runs.
func chartOf(cr *unstructured.Unstructured) string {
	if chart, _, _ := unstructured.NestedString(cr.Object, "status", "release", "chartVersion"); chart != "" {
		return chart
	}
	for _, known := range []string{nextVersion, firstVersion} {
		if strings.Contains(manifestOf(cr), `chart: "`+known+`"`) {
			return known
		}
	}
	return ""
}

func conditionTrue(object *unstructured.Unstructured, kind string) bool {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == kind {
			return c["status"] == string(metav1.ConditionTrue)
		}
	}
	return false
}

// end lets nobody wait for ever.
func (s *sights) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = err
	if err == nil {
		s.failed = context.Canceled
	}
	for a := range s.awaits {
		close(a.done)
		delete(s.awaits, a)
	}
}

// expect begins to wait. What is seen from now on counts, and what was seen
// before where sooner.
func (s *sights) expect(of []name, want func(name, sight) bool) *await {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := &await{left: map[name]bool{}, want: want, done: make(chan struct{}), last: time.Now()}
	for _, about := range of {
		if now, known := s.seen[about]; !known || !want(about, now) {
			a.left[about] = true
		}
	}
	if len(a.left) == 0 || s.failed != nil {
		close(a.done)
	} else {
		s.awaits[a] = true
	}
	return a
}

// wait waits for what is expected, and returns when the last of it was seen.
func (s *sights) wait(ctx context.Context, a *await) (time.Time, error) {
	select {
	case <-a.done:
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.awaits, a)
		for about := range a.left {
			return a.last, fmt.Errorf("%d custom resources are not as they should be, %s of them, which was last seen as %+v: %w",
				len(a.left), about, s.seen[about], context.Cause(ctx))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil && len(a.left) > 0 {
		return a.last, s.failed
	}
	return a.last, nil
}

// get returns what was last seen of a custom resource.
func (s *sights) get(about name) sight {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[about]
}

// Conditions to wait for.

func served(_ name, s sight) bool { return s.ready && !s.gone }

func gone(_ name, s sight) bool { return s.gone }

// servedAt is served for a generation or a later one.
func servedAt(generation int64) func(name, sight) bool {
	return func(_ name, s sight) bool { return s.served >= generation }
}

// runs is served by a version of the chart.
func runs(chart string) func(name, sight) bool {
	return func(n name, s sight) bool { return served(n, s) && s.chart == chart }
}

// servedNext is served for a spec that is about to be edited.
func (s *sights) servedNext(of []name) func(name, sight) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := make(map[name]int64, len(of))
	for _, about := range of {
		next[about] = s.seen[about].generation + 1
	}
	return func(n name, s sight) bool { return s.served >= next[n] }
}
