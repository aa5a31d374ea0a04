package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// observation is the last observed state of a custom resource.
type observation struct {
	// generation is the observed generation. served is the newest generation
	// that was ever observed as complete, with any version of the chart.
	generation, served int64
	// at is the time at which served was first observed.
	at time.Time
	// chart is the version of the deployed chart, if the operator reports it.
	// ready reports whether the current generation is complete.
	chart       string
	ready, gone bool
}

// observations watches all custom resources, with one request for each kind.
type observations struct {
	mu     sync.Mutex
	seen   map[name]observation
	awaits map[*await]bool
	failed error
}

// await is a wait until custom resources satisfy a condition.
type await struct {
	left map[name]bool
	want func(name, observation) bool
	// done is closed when no resource is missing; last is the time of the last
	// one.
	done chan struct{}
	last time.Time
}

// newObservations starts to watch resources until the context ends. No two custom resources
// may have the same name.
func newObservations(ctx context.Context, client dynamic.Interface, resources ...schema.GroupVersionResource) *observations {
	s := &observations{seen: map[name]observation{}, awaits: map[*await]bool{}}
	for _, resource := range resources {
		go func() {
			err := watchAll(ctx, client.Resource(resource), func(cr *unstructured.Unstructured, gone bool) { s.record(cr, gone, time.Now()) })
			s.end(err)
		}()
	}
	return s
}

func (s *observations) record(cr *unstructured.Unstructured, gone bool, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	about := name{cr.GetNamespace(), cr.GetName()}
	now := s.seen[about].next(cr, gone, at)
	s.seen[about] = now
	if gone {
		// A new resource of the same name starts from zero.
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

// next returns the state of a custom resource after an event.
func (s observation) next(cr *unstructured.Unstructured, gone bool, at time.Time) observation {
	s.generation, s.gone, s.chart, s.ready = cr.GetGeneration(), gone, chartOf(cr), isDone(cr)
	if s.ready && s.served < s.generation {
		s.served, s.at = s.generation, at
	}
	return s
}

// isDone reports whether the operator has applied the current spec. Most
// operators report that by the condition Ready with a generation; those of
// operator-sdk by the deployed manifest in the status.
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

// chartOf returns the version of the deployed chart.
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

// end ends all waits with an error.
func (s *observations) end(err error) {
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

// expect starts a wait. Resources that satisfy the condition already count,
// too.
func (s *observations) expect(of []name, want func(name, observation) bool) *await {
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

// wait waits until all resources satisfy the condition, and returns the time of
// the last one.
func (s *observations) wait(ctx context.Context, a *await) (time.Time, error) {
	select {
	case <-a.done:
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.awaits, a)
		for about := range a.left {
			return a.last, fmt.Errorf("%d custom resources are not in the expected state, for example %s with state %+v: %w",
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

// get returns the last observed state of a custom resource.
func (s *observations) get(about name) observation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[about]
}

// Conditions of waits.

func served(_ name, s observation) bool { return s.ready && !s.gone }

func gone(_ name, s observation) bool { return s.gone }

// servedAt is served with at least the given generation.
func servedAt(generation int64) func(name, observation) bool {
	return func(_ name, s observation) bool { return s.served >= generation }
}

// runs is served with a version of the chart.
func runs(chart string) func(name, observation) bool {
	return func(n name, s observation) bool { return served(n, s) && s.chart == chart }
}

// servedNext is served with the generation after the next edit.
func (s *observations) servedNext(of []name) func(name, observation) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := make(map[name]int64, len(of))
	for _, about := range of {
		next[about] = s.seen[about].generation + 1
	}
	return func(n name, s observation) bool { return s.served >= next[n] }
}
