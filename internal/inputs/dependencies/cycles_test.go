package dependencies

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// cycleOf returns the names in the cycle of an App.
func (r *recordingStore) cycleOf(name string) string {
	cycle := r.Check(types.UID("App-"+name), r.time).Cycle
	names := make([]string, len(cycle))
	for i, key := range cycle {
		names[i] = key.Name
	}
	return strings.Join(names, " ")
}

func TestCycles(t *testing.T) {
	r := newRecordingStore()
	expect := func(want map[string]string) {
		t.Helper()
		for name, cycle := range want {
			if got := r.cycleOf(name); got != cycle {
				t.Errorf("cycle of %s is %q, want %q", name, got, cycle)
			}
		}
	}
	r.Set(app("b"), []Ref{ref(appGVK, "c")})
	r.Set(app("c"), []Ref{ref(appGVK, "a")})
	r.Set(app("outside"), []Ref{ref(appGVK, "a")})
	expect(map[string]string{"b": "", "c": "", "outside": ""})
	r.Set(app("a"), []Ref{ref(appGVK, "b"), ref(dbGVK, "d")})
	r.expectNotified(t, "App-b", "App-c")
	expect(map[string]string{"a": "a b c", "b": "a b c", "c": "a b c", "outside": ""})

	// A shorter cycle does not replace a valid one.
	r.Set(app("b"), []Ref{ref(appGVK, "c"), ref(appGVK, "a")})
	r.expectNotified(t)
	r.Set(app("c"), nil)
	r.expectNotified(t, "App-a", "App-b")
	expect(map[string]string{"a": "a b", "b": "a b", "c": ""})
	r.Forget("App-b")
	r.expectNotified(t, "App-a")
	expect(map[string]string{"a": "", "b": ""})

	r.Set(app("a"), []Ref{ref(appGVK, "a")})
	expect(map[string]string{"a": "a"})
	r.Set(app("a"), nil)
	expect(map[string]string{"a": ""})
}

// TestCycles_LargeComponentsShareOne: one list for each of thousands of custom resources in one
// ring would take hundreds of megabytes.
func TestCycles_LargeComponentsShareOne(t *testing.T) {
	const all = 300
	r := newRecordingStore()
	name := func(i int) string { return fmt.Sprintf("%04d", i%all) }
	for i := range all {
		r.Set(app(name(i)), []Ref{ref(appGVK, name(i+1))})
	}
	lists := map[*Key]int{}
	count := func() {
		clear(lists)
		for _, u := range r.byUID {
			if len(u.cycle) > 0 {
				lists[&u.cycle[0]] = len(u.cycle)
			}
		}
	}
	count()
	if len(lists) != 1 || len(strings.Fields(r.cycleOf("0150"))) != all {
		t.Fatalf("lists %v", lists)
	}
	// A short cut makes a shorter ring, and others stay outside of it.
	r.Set(app("0000"), []Ref{ref(appGVK, "0150")})
	count()
	if len(lists) != 1 || r.cycleOf("0001") != "" || len(strings.Fields(r.cycleOf("0200"))) != all/2+1 {
		t.Errorf("lists %v, cycle of 0001 %q", lists, r.cycleOf("0001"))
	}
	// What remains in a small component has a cycle of its own.
	r.Set(app("0000"), nil)
	r.Set(app("0151"), []Ref{ref(appGVK, "0150")})
	count()
	if len(lists) != 2 || r.cycleOf("0151") != "0150 0151" || r.cycleOf("0152") != "" {
		t.Errorf("lists %v, cycles %q and %q", lists, r.cycleOf("0151"), r.cycleOf("0152"))
	}
}

func TestCycles_Selectors(t *testing.T) {
	r := newRecordingStore()
	a, b := r.settled(newObject(appGVK, "a")), r.settled(labeled(newObject(appGVK, "b"), "tier", "gold"))
	r.Set(app("a"), []Ref{selector(appGVK, "tier=gold")})
	r.Set(app("b"), []Ref{selector(appGVK, "tier=silver")})
	if got := r.cycleOf("a") + r.cycleOf("b"); got != "" {
		t.Errorf("cycle %q", got)
	}
	r.notified = nil
	r.put(labeled(a, "tier", "silver"))
	r.expectNotified(t, "App-a", "App-b")
	if got := r.cycleOf("a"); got != "a b" {
		t.Errorf("cycle %q", got)
	}
	r.cycleOf("b")
	r.remove(b)
	r.expectNotified(t, "App-a", "App-b")
}

func TestCycles_RecreatedCustomResource(t *testing.T) {
	r := newRecordingStore()
	r.Set(app("a"), []Ref{ref(appGVK, "b")})
	r.Set(app("b"), []Ref{ref(appGVK, "a")})
	r.cycleOf("a")
	again := app("b")
	again.UID = "again"
	r.notified = nil
	r.Set(again, nil)
	r.expectNotified(t, "App-a")
	r.Forget("App-b")
	if r.byKey[again.Key] == nil {
		t.Error("the new custom resource was forgotten")
	}
}
