package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// seen returns a custom resource with a generation and a status.
func seen(n name, generation int64, status map[string]any) *unstructured.Unstructured {
	cr := n.object("hello")
	cr.SetGeneration(generation)
	if status != nil {
		cr.Object["status"] = status
	}
	return cr
}

func ready(observed int64, state string) map[string]any {
	return map[string]any{"observedGeneration": observed, "conditions": []any{map[string]any{"type": "Ready", "status": state}}}
}

func TestIsDone(t *testing.T) {
	deployed := []any{map[string]any{"type": "Deployed", "status": "True"}}
	for _, test := range []struct {
		name   string
		status map[string]any
		want   bool
	}{
		{"no status", nil, false},
		{"ready", ready(2, "True"), true},
		{"not ready", ready(2, "False"), false},
		{"ready for another spec", ready(1, "True"), false},
		{"operator-sdk, with the manifest of this spec", map[string]any{
			"conditions": deployed, "deployedRelease": map[string]any{"manifest": "data:\n  message: \"hello\"\n"},
		}, true},
		{"operator-sdk, with the manifest of another spec", map[string]any{
			"conditions": deployed, "deployedRelease": map[string]any{"manifest": "data:\n  message: \"bye\"\n"},
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := isDone(seen(name{"a", "b"}, 2, test.status)); got != test.want {
				t.Errorf("isDone = %v", got)
			}
		})
	}
}

func TestChartOf(t *testing.T) {
	for want, status := range map[string]map[string]any{
		"":           nil,
		nextVersion:  {"release": map[string]any{"chartVersion": nextVersion}},
		firstVersion: {"deployedRelease": map[string]any{"manifest": "  chart: \"0.1.0\"\n"}},
	} {
		if got := chartOf(seen(name{"a", "b"}, 1, status)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestAwait(t *testing.T) {
	one, two := name{"a", "one"}, name{"a", "two"}
	s := &observations{seen: map[name]observation{}, awaits: map[*await]bool{}}
	begin := time.Now()
	both := s.expect([]name{one, two}, served)
	s.record(seen(one, 1, ready(1, "True")), false, begin.Add(time.Second))
	s.record(seen(one, 1, ready(1, "True")), false, begin.Add(2*time.Second))
	if !waiting(both) {
		t.Fatal("the wait ended although one resource is missing")
	}
	s.record(seen(two, 1, ready(1, "True")), false, begin.Add(3*time.Second))
	last, err := s.wait(t.Context(), both)
	if err != nil || !last.Equal(begin.Add(3*time.Second)) {
		t.Errorf("the wait ended after %s, %v", last.Sub(begin), err)
	}
	if at := s.get(one).at; !at.Equal(begin.Add(time.Second)) {
		t.Errorf("the first was served after %s", at.Sub(begin))
	}

	// States that were observed before the wait count; those before an edit do
	// not.
	if waiting(s.expect([]name{one}, served)) {
		t.Error("it waits although the state was already observed")
	}
	edited := s.expect([]name{one}, s.servedNext([]name{one}))
	s.record(seen(one, 2, ready(1, "True")), false, begin.Add(4*time.Second))
	if !waiting(edited) {
		t.Error("the status of the previous spec counts for the edited one")
	}
	s.record(seen(one, 2, ready(2, "True")), false, begin.Add(5*time.Second))
	if waiting(edited) {
		t.Error("the wait continues after the edit was served")
	}

	// A recreated resource starts from zero.
	deleted := s.expect([]name{one}, gone)
	s.record(seen(one, 2, ready(2, "True")), true, begin.Add(6*time.Second))
	if waiting(deleted) || !waiting(s.expect([]name{one}, served)) {
		t.Error("a deleted resource counts as existing")
	}
	s.record(seen(one, 1, nil), false, begin.Add(7*time.Second))
	if now := s.get(one); now.served != 0 {
		t.Errorf("a recreated resource has the old state: %+v", now)
	}

	short, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if _, err := s.wait(short, s.expect([]name{one}, served)); err == nil {
		t.Error("no error for a canceled wait")
	}
	open := s.expect([]name{one}, served)
	s.end(errors.New("watch ended"))
	if _, err := s.wait(t.Context(), open); err == nil {
		t.Error("no error after the watch ended")
	}
}

func waiting(a *await) bool {
	select {
	case <-a.done:
		return false
	default:
		return true
	}
}
