package inventory

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/apply"
)

// inNamespace returns a change of the namespace of an object.
func inNamespace(name string) func(*apply.State) {
	return func(s *apply.State) { s.Namespace = name }
}

// claims returns the names of the objects that carry the label of web, but do not count for it.
func (l *recordingIndex) claims() string {
	claimed := l.ClaimedBy(web)
	names := make([]string, len(claimed))
	for i := range claimed {
		names[i] = claimed[i].Name
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// The object outside of the release namespace carries the owner's label and an Apply entry.
func TestClaimedObjects_CountOnlyIfNamedByRelease(t *testing.T) {
	inside, outside := applied("inside"), but(applied("outside"), 10, inNamespace("other"))
	both := apply.Digest([]apply.State{inside, outside})
	start := func() *recordingIndex {
		l := newRecordingIndex()
		l.observe(&inside, &healthy)
		l.observe(&outside, &healthy)
		return l
	}
	expect := func(t *testing.T, l *recordingIndex, owned, claims string) {
		t.Helper()
		if got := l.owned(web); got != owned {
			t.Errorf("owned: %q, want %q", got, owned)
		}
		if got := l.claims(); got != claims {
			t.Errorf("claimed: %q, want %q", got, claims)
		}
	}
	t.Run("not named", func(t *testing.T) {
		l := start()
		expect(t, l, "inside", "outside")
		if len(l.changed) != 1 {
			t.Errorf("got %d reconciliations of the owner, want 1 for its own object", len(l.changed))
		}
		if !l.RestoreExpected(web, Recorded{Digest: apply.Digest([]apply.State{inside})}) {
			t.Error("the claimed object is part of the digest")
		}
		if health := l.Health(web, created); health.Total != 1 {
			t.Errorf("got the health of %d objects, want 1", health.Total)
		}
	})
	t.Run("release namespace unknown", func(t *testing.T) {
		l := start()
		l.Forget(web)
		expect(t, l, "", "inside, outside")
	})
	t.Run("listed in the record", func(t *testing.T) {
		l := start()
		if !l.RestoreExpected(web, Recorded{Digest: both, Outside: []apply.Key{outside.Key}}) {
			t.Error("the expected state was not restored")
		}
		expect(t, l, "inside, outside", "")
	})
	t.Run("only another object is listed in the record", func(t *testing.T) {
		l := start()
		third := but(applied("third"), 10, inNamespace("other"))
		l.observe(&third, &healthy)
		if !l.RestoreExpected(web, Recorded{Digest: both, Outside: []apply.Key{outside.Key}}) {
			t.Error("the expected state was not restored")
		}
		expect(t, l, "inside, outside", "third")
	})
	t.Run("covered by the digest of an older record", func(t *testing.T) {
		l := start()
		if !l.RestoreExpected(web, Recorded{Digest: both}) {
			t.Error("the expected state was not restored")
		}
		expect(t, l, "inside, outside", "")
	})
	t.Run("applied by this process", func(t *testing.T) {
		l := start()
		again := but(outside, 11)
		l.Put(again)
		expect(t, l, "inside, outside", "")
		// The next revision does not have the object.
		l.Expect(web, []apply.State{inside})
		expect(t, l, "inside", "outside")
	})
	t.Run("expected state no longer known", func(t *testing.T) {
		l := start()
		l.Expect(web, []apply.State{inside, outside})
		l.Expect(web, nil)
		expect(t, l, "inside, outside", "")
	})
}

func TestFollow_ReportsEveryChange(t *testing.T) {
	for _, test := range []struct {
		name  string
		kinds []schema.GroupKind
		want  int
	}{
		{"not followed", nil, 0},
		{"another kind", []schema.GroupKind{{Kind: "Other"}}, 0},
		{"another group", []schema.GroupKind{{Group: "other", Kind: applied("a").Kind}}, 0},
		{"the kind", []schema.GroupKind{applied("a").GroupKind()}, 2},
		{"the kind of any group", []schema.GroupKind{{Kind: applied("a").Kind}}, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newRecordingIndex()
			first, second := applied("a"), but(applied("a"), 20)
			l.observe(&first, nil)
			l.Follow(web, test.kinds)
			l.observe(&second, nil)
			l.observe(&second, nil)
			l.observeDeletion(&second, true)
			if len(l.changed) != test.want {
				t.Errorf("got %d reports, want %d", len(l.changed), test.want)
			}
			l.Forget(web)
			if len(l.known(web).followed) > 0 {
				t.Error("the owner is not forgotten")
			}
		})
	}
}
