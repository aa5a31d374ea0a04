package dependencies

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// blocking returns what delays the deletion of a Database.
func (r *recordingStore) blocking(t *testing.T, name string, wantAfter time.Duration) string {
	t.Helper()
	blocking, after := r.Dependents(keyOf(dbGVK, name), r.time)
	if after != wantAfter {
		t.Errorf("the result changes after %s, want %s", after, wantAfter)
	}
	var lines []string
	for _, one := range blocking {
		lines = append(lines, strings.TrimSpace(one.Key.Name+" "+one.Message))
	}
	return strings.Join(lines, ", ")
}

func TestDependents(t *testing.T) {
	r := newRecordingStore()
	r.settled(labeled(newObject(dbGVK, "d"), "tier", "gold"))
	unreleased := app("u")
	unreleased.Released = false
	r.Set(unreleased, []Ref{ref(dbGVK, "d")})
	r.Set(app("other"), []Ref{ref(dbGVK, "e")})
	if got := r.blocking(t, "d", 0); got != "" {
		t.Errorf("blocked by %q", got)
	}
	r.Set(app("x"), []Ref{ref(dbGVK, "d")})
	r.Set(app("s"), []Ref{selector(dbGVK, "tier=gold")})
	r.expectNotified(t)
	if got := r.blocking(t, "d", 0); got != "s, x" {
		t.Errorf("blocked by %q", got)
	}

	deleted := app("x")
	deleted.Deleting = r.time
	r.Set(deleted, []Ref{ref(dbGVK, "d")})
	r.expectNotified(t, "Database-d")
	r.put(labeled(newObject(dbGVK, "d"), "tier", "silver"))
	r.expectNotified(t, "App-s", "Database-d")
	r.time = r.time.Add(2 * time.Minute)
	if got := r.blocking(t, "d", 3*time.Minute); got != "x is being deleted" {
		t.Errorf("blocked by %q", got)
	}
	r.time = r.time.Add(3 * time.Minute)
	if got := r.blocking(t, "d", 0); got != "" {
		t.Errorf("blocked by %q", got)
	}
}

func TestDependents_NotifiesWhenNothingBlocks(t *testing.T) {
	released := app("x")
	released.Released = false
	for name, change := range map[string]func(*recordingStore){
		"forgotten":        func(r *recordingStore) { r.Forget("App-x") },
		"no release":       func(r *recordingStore) { r.Set(released, []Ref{ref(dbGVK, "d")}) },
		"other dependency": func(r *recordingStore) { r.Set(app("x"), []Ref{ref(dbGVK, "e")}) },
		"no dependency":    func(r *recordingStore) { r.Set(app("x"), nil) },
		"recreated":        func(r *recordingStore) { again := app("x"); again.UID = "again"; r.Set(again, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRecordingStore()
			r.settled(newObject(dbGVK, "d"))
			r.Set(app("x"), []Ref{ref(dbGVK, "d")})
			r.blocking(t, "d", 0)
			change(r)
			r.expectNotified(t, "Database-d")
			if got := r.blocking(t, "d", 0); got != "" {
				t.Errorf("blocked by %q", got)
			}
			if len(r.blocked) > 0 {
				t.Errorf("left over: %v", r.blocked)
			}
		})
	}
}

func TestDependents_ReleaseBegins(t *testing.T) {
	r := newRecordingStore()
	r.settled(newObject(dbGVK, "d"))
	unreleased := app("u")
	unreleased.Released = false
	r.Set(unreleased, []Ref{ref(dbGVK, "d")})
	r.Set(app("x"), []Ref{ref(dbGVK, "d")})
	if got := r.blocking(t, "d", 0); got != "x" {
		t.Errorf("blocked by %q", got)
	}
	r.Hold("Database-d", "changing")
	r.expectNotified(t, "App-u", "App-x")
	if waits := r.Begin("App-u", r.time).Waits; waits == nil || waits.Message != "changing" {
		t.Errorf("waits for %v", waits)
	}
	if got := r.blocking(t, "d", 0); got != "x" {
		t.Errorf("while the user waits, blocked by %q", got)
	}
	r.settled(newObject(dbGVK, "d"))
	r.notified = nil
	if waits := r.Begin("App-u", r.time).Waits; waits != nil {
		t.Errorf("waits for %v", waits)
	}
	r.expectNotified(t, "Database-d")
	if got := r.blocking(t, "d", 0); got != "u, x" {
		t.Errorf("blocked by %q", got)
	}
}

func TestDependents_MembersOfACycleDoNotBlock(t *testing.T) {
	r := newRecordingStore()
	r.Set(app("a"), []Ref{ref(appGVK, "b")})
	r.Set(app("b"), []Ref{ref(appGVK, "a")})
	r.Set(app("c"), []Ref{ref(appGVK, "a")})
	blocking, _ := r.Dependents(keyOf(appGVK, "a"), r.time)
	if want := []Dependent{{Key: keyOf(appGVK, "c")}}; !slices.Equal(blocking, want) {
		t.Errorf("blocked by %v, want %v", blocking, want)
	}
}

func TestDependents_UnknownUntilReconciled(t *testing.T) {
	r := newRecordingStore()
	const unknown = "the operator has yet to reconcile custom resources of the kind App.example.com"
	expect := func(want string, after time.Duration) {
		t.Helper()
		if got := r.blocking(t, "d", after); got != want {
			t.Errorf("blocked by %q, want %q", got, want)
		}
	}
	r.settled(newObject(dbGVK, "d"))
	r.Set(app("x"), nil)
	restart := func() { r.Serve(appGVK.GroupKind(), []schema.GroupKind{dbGVK.GroupKind()}, nil) }

	restart()
	r.time = r.time.Add(time.Minute)
	expect(unknown, time.Minute)
	r.Set(app("w"), nil)
	r.Expect(appGVK.GroupKind(), []types.UID{"App-w", "App-x", "App-y", "App-z"})
	r.expectNotified(t, "Database-d")
	expect(unknown, 0)
	r.time = r.time.Add(time.Hour)
	expect(unknown, 0)
	r.Set(app("x"), nil)
	r.Forget("App-y")
	r.expectNotified(t)
	r.Set(app("z"), nil)
	r.expectNotified(t, "Database-d")
	expect("", 0)

	// A custom resource that was deleted before Expect, or after it.
	restart()
	for _, name := range []string{"x", "y"} {
		r.put(newObject(appGVK, name))
	}
	r.remove(newObject(appGVK, "x"))
	r.Expect(appGVK.GroupKind(), []types.UID{"App-x", "App-y"})
	expect(unknown, 0)
	r.Feed(appGVK).Synced()
	r.remove(newObject(appGVK, "y"))
	expect("", 0)

	// Custom resources of a namespace that is watched later.
	r.put(newObject(appGVK, "z"))
	r.Expect(appGVK.GroupKind(), []types.UID{"App-x", "App-z"})
	expect(unknown, 0)
	r.Set(app("z"), nil)
	expect("", 0)

	restart()
	expect(unknown, 2*time.Minute)
	r.time = r.time.Add(2 * time.Minute)
	expect("", 0)
	restart()
	expect(unknown, 2*time.Minute)
	r.notified = nil
	r.Stop(appGVK.GroupKind())
	r.expectNotified(t, "Database-d")
	expect("", 0)
}

func TestDependents_SelectorsOfAnUnlistedKind(t *testing.T) {
	r := newRecordingStore()
	r.Set(app("s"), []Ref{selector(dbGVK, "tier=gold")})
	r.Serve(dbGVK.GroupKind(), nil, nil)
	if got := r.blocking(t, "d", 0); got != messageNotListed {
		t.Errorf("blocked by %q", got)
	}
	r.put(newObject(dbGVK, "d"))
	r.notified = nil
	r.Feed(dbGVK).Synced()
	r.expectNotified(t, "App-s", "Database-d")
}
