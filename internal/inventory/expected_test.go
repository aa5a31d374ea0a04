package inventory

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/apply"
)

// After another owner has taken over an object, the object has drifted for the first owner,
// even if the other owner is deleted.
func TestDrift_ObjectTakenOverByOtherOwner(t *testing.T) {
	l := newRecordingIndex()
	a := applied("a")
	l.Put(a)
	l.Expect(web, []apply.State{a})
	taken := but(a, 11, otherOwner)
	l.Put(taken)
	l.Expect(other, []apply.State{taken})
	expect := func(when string, want ...Drift) {
		t.Helper()
		if diff := cmp.Diff(want, l.Drift(web)); diff != "" {
			t.Errorf("%s: drift (-want +got):\n%s", when, diff)
		}
		if l.Intact(web, a.Key) {
			t.Errorf("%s: the object counts as intact", when)
		}
	}
	expect("taken over", Drift{Key: a.Key})
	if drift := l.Drift(other); len(drift) > 0 || !l.Intact(other, a.Key) {
		t.Errorf("got drift %v for the new owner", drift)
	}
	l.Remove(taken)
	expect("deleted by the new owner", Drift{Key: a.Key, Gone: true})
	l.Expect(other, nil)
	l.observeDeletion(&taken, true)
	expect("new owner deleted", Drift{Key: a.Key, Gone: true})
	again := but(a, 12)
	l.Put(again)
	l.ExpectOne(web, again)
	if drift := l.Drift(web); len(drift) > 0 || !l.Intact(web, a.Key) {
		t.Errorf("got drift %v after the correction", drift)
	}
	l.Expect(web, nil)
	l.observeDeletion(&again, true)
	l.Forget(web)
	l.Forget(other)
	if len(l.objects) > 0 || len(l.owners) > 0 {
		t.Errorf("the index holds %d objects and %d owners", len(l.objects), len(l.owners))
	}
}

// If an owner expects an object that another owner has applied, the object has drifted for
// the first owner only.
func TestDrift_ObjectExpectedByTwoOwners(t *testing.T) {
	l := newRecordingIndex()
	foreign := but(applied("a"), 11, otherOwner)
	l.Put(foreign)
	l.Expect(other, []apply.State{foreign})
	l.Expect(web, []apply.State{{Key: foreign.Key, Owner: web}})
	if drift := l.Drift(other); len(drift) > 0 || !l.Intact(other, foreign.Key) || l.Drifted(other, foreign.Key) {
		t.Errorf("got drift %v for the owner that applied the object", drift)
	}
	if diff := cmp.Diff([]Drift{{Key: foreign.Key}}, l.Drift(web)); diff != "" {
		t.Errorf("drift for the owner that did not apply it (-want +got):\n%s", diff)
	}
	l.observe(new(but(foreign, 12, fieldChanged)), nil)
	if !l.Drifted(other, foreign.Key) || l.Drifted(web, foreign.Key) {
		t.Error("drift is reported for the wrong owner")
	}
	l.Expect(web, nil)
	if len(l.Drift(web)) > 0 || !l.Drifted(other, foreign.Key) {
		t.Error("the expected state of the other owner was dropped, too")
	}
}

func TestExpect_ReplacesExpectedState(t *testing.T) {
	l := newRecordingIndex()
	a, b, c := applied("a"), applied("b"), applied("c")
	for _, s := range []apply.State{a, b, c} {
		l.Put(s)
	}
	if l.Intact(web, a.Key) {
		t.Error("the object counts as intact without an expected state")
	}
	l.Expect(web, []apply.State{but(c, 10, fieldChanged), but(a, 10, fieldChanged), b})
	if got := l.driftNames(web); got != "a, c" {
		t.Errorf("got drift %q, want it sorted by name", got)
	}
	l.Expect(web, []apply.State{b})
	if got := l.driftNames(web); got != "" {
		t.Errorf("got drift %q of an object that is no longer expected", got)
	}
	l.observe(new(but(a, 11, fieldChanged)), nil)
	if len(l.notified) != 0 {
		t.Error("drift notification for an object that is no longer expected")
	}
	// An empty expected state is not an unknown one.
	l.Expect(web, []apply.State{})
	if !l.RestoreExpected(web, Recorded{}) {
		t.Error("the empty expected state is not known")
	}
	l.Expect(web, nil)
	if l.RestoreExpected(web, Recorded{}) {
		t.Error("the expected state is known after it was dropped")
	}
}

func TestExpectOne_IgnoresUnknownOwner(t *testing.T) {
	l := newRecordingIndex()
	l.ExpectOne(web, applied("a"))
	if got := l.driftNames(web); got != "" {
		t.Errorf("got drift %q", got)
	}
	l.observe(new(but(applied("a"), 11, fieldChanged)), nil)
	if len(l.notified) != 0 {
		t.Errorf("got drift notifications for %q", l.notified)
	}
}

func TestRestoreExpected_ComparesDigest(t *testing.T) {
	a, b := applied("a"), applied("b")
	digest := apply.Digest([]apply.State{b, a})
	for _, test := range []struct {
		name     string
		digest   string
		observes []apply.State
		want     bool
	}{
		{"objects match the digest", digest, []apply.State{a, b}, true},
		{"newer objects match the digest", digest, []apply.State{but(a, 99), but(b, 98)}, true},
		{"recreated with the same fields", digest, []apply.State{but(a, 99, recreated), b}, true},
		{"an additional object with copied labels", digest, []apply.State{a, b, but(applied("c"), 11, copied)}, true},
		{"an additional object of another owner", digest, []apply.State{a, b, but(applied("c"), 11, otherOwner)}, true},
		{"one has drifted", digest, []apply.State{a, but(b, 11, fieldChanged)}, false},
		{"one is deleted", digest, []apply.State{a}, false},
		{"one without owner label", digest, []apply.State{a, but(b, 11, withoutOwner)}, false},
		{"one without managed fields", digest, []apply.State{a, but(b, 11, copied)}, false},
		{"one additional owned object", digest, []apply.State{a, b, applied("c")}, false},
		{"no objects", digest, nil, false},
		{"no digest", "", []apply.State{a, b}, false},
		{"no digest and no objects", "", nil, false},
		{"digest of no objects", apply.Digest(nil), nil, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newRecordingIndex()
			for _, s := range test.observes {
				l.observe(new(s), nil)
			}
			if got := l.RestoreExpected(web, Recorded{Digest: test.digest}); got != test.want {
				t.Fatalf("restored: %v, want %v", got, test.want)
			}
			if got := l.driftNames(web); got != "" {
				t.Errorf("got drift %q", got)
			}
			if !test.want {
				return
			}
			// A known expected state is not compared with the digest again.
			if !l.RestoreExpected(web, Recorded{Digest: "another"}) {
				t.Error("the expected state is no longer known")
			}
			for _, s := range test.observes {
				if s.Managed && s.Owner == web != l.Intact(web, s.Key) {
					t.Errorf("%s is intact: %v", s.Key, l.Intact(web, s.Key))
				}
			}
			l.observe(new(but(applied("a"), 100, fieldChanged)), nil)
			if want := len(test.observes) > 0; want != (l.driftNames(web) == "a") {
				t.Errorf("got drift %q", l.driftNames(web))
			}
		})
	}
}

// Kept objects that the manifest no longer contains still have the owner label, but are not
// part of the expected state.
func TestRestoreExpected_IgnoresDroppedKeptObjects(t *testing.T) {
	a, b := applied("a"), but(applied("b"), 10, kept)
	left := func(name string) apply.State { return but(applied(name), 11, kept) }
	for _, test := range []struct {
		name     string
		observes []apply.State
		want     bool
	}{
		{"one dropped", []apply.State{a, b, left("c")}, true},
		{"three dropped", []apply.State{left("0"), a, left("c"), b, left("d")}, true},
		{"one dropped, and an expected one deleted", []apply.State{a, left("c")}, false},
		{"one dropped, and another has drifted", []apply.State{but(a, 11, fieldChanged), b, left("c")}, false},
		{"one dropped that is not kept", []apply.State{a, b, left("c"), applied("d")}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newRecordingIndex()
			for _, s := range test.observes {
				l.observe(new(s), nil)
			}
			if got := l.RestoreExpected(web, Recorded{Digest: apply.Digest([]apply.State{a, b})}); got != test.want {
				t.Fatalf("restored: %v, want %v", got, test.want)
			}
			l.observe(new(but(left("c"), 12, fieldChanged)), nil)
			if len(l.notified) > 0 || l.Intact(web, left("c").Key) {
				t.Errorf("the dropped object is still expected; drift notifications for %q", l.notified)
			}
			if test.want && (!l.Intact(web, a.Key) || !l.Intact(web, b.Key)) {
				t.Error("the objects in the manifest are not expected")
			}
		})
	}
}

// An autoscaler may scale an object while no process is running. If a user scales the
// object, that is drift.
func TestRestoreExpected_AcceptsAutoscaledReplicas(t *testing.T) {
	const full, without = `{"f:spec":{"f:paused":{},"f:replicas":{}}}`, `{"f:spec":{"f:paused":{}}}`
	state := func(version, fields string, entries ...metav1.ManagedFieldsEntry) apply.State {
		return apply.StateOf(schema.GroupKind{Group: "apps", Kind: "Deployment"}, live("a", version, fields, entries...))
	}
	digest := apply.Digest([]apply.State{state("10", full), applied("b")})
	begin := func(s apply.State) *recordingIndex {
		l := newRecordingIndex()
		l.observe(new(applied("b")), nil)
		l.observe(new(s), nil)
		return l
	}
	l := begin(state("11", without, scaledBy("kube-controller-manager")))
	if !l.RestoreExpected(web, Recorded{Digest: digest}) || l.driftNames(web) != "" {
		t.Fatalf("scaled by an autoscaler: got drift %q", l.driftNames(web))
	}
	l.observe(new(state("12", without, scaledBy("kubectl"))), nil)
	if got := l.driftNames(web); got != "a" || len(l.notified) != 1 {
		t.Errorf("then scaled by a user: got drift %q, notifications for %q", got, l.notified)
	}
	if l := begin(state("11", without, scaledBy("kubectl"))); l.RestoreExpected(web, Recorded{Digest: digest}) {
		t.Error("scaled by a user: the expected state was restored")
	}
}

// scaledBy returns the managed fields entry of a manager that has set replicas through the
// scale subresource.
func scaledBy(manager string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "scale", FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`),
	}
}

func TestReleasedBy_ReturnsNoForgedObjects(t *testing.T) {
	x := newRecordingIndex()
	x.SetReleaseNamespace(web, applied("a").Namespace)
	for _, name := range []string{"a", "b"} {
		x.Put(applied(name))
	}
	if objects, known := x.ReleasedBy(web); known || len(objects) > 0 {
		t.Errorf("without expected objects: %v, %t", objects, known)
	}
	x.Expect(web, x.OwnedBy(web))
	forged := applied("forged")
	x.observe(&forged, nil)
	recreated := but(applied("b"), 11, recreated)
	x.observe(&recreated, nil)
	if objects, known := x.ReleasedBy(web); !known || len(objects) != 1 || objects[0].Name != "a" || len(x.OwnedBy(web)) != 3 {
		t.Errorf("%v, %t, want only a", objects, known)
	}
}
