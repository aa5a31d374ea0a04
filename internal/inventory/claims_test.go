package inventory

import (
	"slices"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/internal/apply"
)

// inNamespace returns a change that puts an object into another namespace.
func inNamespace(name string) func(*apply.State) {
	return func(s *apply.State) { s.Namespace = name }
}

// claims are the names of the objects that only carry an owner's label.
func (l *listened) claims() string {
	claimed := l.ClaimedBy(web)
	names := make([]string, len(claimed))
	for i := range claimed {
		names[i] = claimed[i].Name
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// TestClaims_CountOnlyIfTheReleaseNamesThem: an object outside of the release's
// namespace carries the owner's label and an Apply entry.
func TestClaims_CountOnlyIfTheReleaseNamesThem(t *testing.T) {
	inside, outside := applied("inside"), but(applied("outside"), 10, inNamespace("other"))
	both := apply.Digest([]apply.State{inside, outside})
	start := func() *listened {
		l := newListened()
		l.observe(&inside, &healthy)
		l.observe(&outside, &healthy)
		return l
	}
	expect := func(t *testing.T, l *listened, owned, claims string) {
		t.Helper()
		if got := l.owned(web); got != owned {
			t.Errorf("owned: %q, want %q", got, owned)
		}
		if got := l.claims(); got != claims {
			t.Errorf("claimed: %q, want %q", got, claims)
		}
	}
	t.Run("nothing names it", func(t *testing.T) {
		l := start()
		expect(t, l, "inside", "outside")
		if len(l.changed) != 1 {
			t.Errorf("the owner was reconciled %d times for its own object and another", len(l.changed))
		}
		if !l.RestoreExpected(web, Recorded{Digest: apply.Digest([]apply.State{inside})}) {
			t.Error("it is part of the digest")
		}
		if health := l.Health(web, created); health.Total != 1 {
			t.Errorf("the health is that of %d objects", health.Total)
		}
	})
	t.Run("the release is nowhere", func(t *testing.T) {
		l := start()
		l.Forget(web)
		expect(t, l, "", "inside, outside")
	})
	t.Run("the record lists it", func(t *testing.T) {
		l := start()
		if !l.RestoreExpected(web, Recorded{Digest: both, Outside: []apply.Key{outside.Key}}) {
			t.Error("nothing is expected")
		}
		expect(t, l, "inside, outside", "")
	})
	t.Run("the record lists another, and this one has another name", func(t *testing.T) {
		l := start()
		third := but(applied("third"), 10, inNamespace("other"))
		l.observe(&third, &healthy)
		if !l.RestoreExpected(web, Recorded{Digest: both, Outside: []apply.Key{outside.Key}}) {
			t.Error("nothing is expected")
		}
		expect(t, l, "inside, outside", "third")
	})
	t.Run("an older record covers it", func(t *testing.T) {
		l := start()
		if !l.RestoreExpected(web, Recorded{Digest: both}) {
			t.Error("nothing is expected")
		}
		expect(t, l, "inside, outside", "")
	})
	t.Run("this process applied it", func(t *testing.T) {
		l := start()
		again := but(outside, 11)
		l.Put(again)
		expect(t, l, "inside, outside", "")
		// Its release does without it.
		l.Expect(web, []apply.State{inside})
		expect(t, l, "inside", "outside")
	})
	t.Run("it is no longer known what is expected", func(t *testing.T) {
		l := start()
		l.Expect(web, []apply.State{inside, outside})
		l.Expect(web, nil)
		expect(t, l, "inside, outside", "")
	})
}
