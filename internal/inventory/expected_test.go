package inventory

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/apply"
)

// TestTakenByAnotherOwner: both are told what became of an object that two
// releases name, also when the one that took it is gone.
func TestTakenByAnotherOwner(t *testing.T) {
	l := newListened()
	a := applied("a")
	l.Put(a)
	l.Expect(web, []apply.State{a})
	taken := but(a, 11, others)
	l.Put(taken)
	l.Expect(other, []apply.State{taken})
	expect := func(when string, want ...Drift) {
		t.Helper()
		if diff := cmp.Diff(want, l.Drift(web)); diff != "" {
			t.Errorf("%s: the drift (-want +got):\n%s", when, diff)
		}
		if l.Intact(web, a.Key) {
			t.Errorf("%s: it counts as intact", when)
		}
	}
	expect("taken", Drift{Key: a.Key})
	if drift := l.Drift(other); len(drift) > 0 || !l.Intact(other, a.Key) {
		t.Errorf("who took it sees %v", drift)
	}
	l.Remove(taken)
	expect("deleted by who took it", Drift{Key: a.Key, Gone: true})
	l.Expect(other, nil)
	l.observeDeletion(&taken, true)
	expect("given up by who took it", Drift{Key: a.Key, Gone: true})
	again := but(a, 12)
	l.Put(again)
	l.ExpectOne(web, again)
	if drift := l.Drift(web); len(drift) > 0 || !l.Intact(web, a.Key) {
		t.Errorf("brought back, it sees %v", drift)
	}
	l.Expect(web, nil)
	l.observeDeletion(&again, true)
	l.Forget(web)
	l.Forget(other)
	if len(l.objects) > 0 || len(l.owners) > 0 {
		t.Errorf("the index holds %d objects and %d owners", len(l.objects), len(l.owners))
	}
}

// TestMissedByItsOwner: an owner that expects what another has does not take its
// place, and is told all the same that it misses it.
func TestMissedByItsOwner(t *testing.T) {
	l := newListened()
	theirs := but(applied("a"), 11, others)
	l.Put(theirs)
	l.Expect(other, []apply.State{theirs})
	l.Expect(web, []apply.State{{Key: theirs.Key, Owner: web}})
	if drift := l.Drift(other); len(drift) > 0 || !l.Intact(other, theirs.Key) || l.Drifted(other, theirs.Key) {
		t.Errorf("who has it misses %v", drift)
	}
	if diff := cmp.Diff([]Drift{{Key: theirs.Key}}, l.Drift(web)); diff != "" {
		t.Errorf("the other misses (-want +got):\n%s", diff)
	}
	l.observe(new(but(theirs, 12, damaged)), nil)
	if !l.Drifted(other, theirs.Key) || l.Drifted(web, theirs.Key) {
		t.Error("damaged, it counts as the other's")
	}
	l.Expect(web, nil)
	if len(l.Drift(web)) > 0 || !l.Drifted(other, theirs.Key) {
		t.Error("what one no more expects, the other does no more either")
	}
}

func TestExpect(t *testing.T) {
	l := newListened()
	a, b, c := applied("a"), applied("b"), applied("c")
	for _, s := range []apply.State{a, b, c} {
		l.Put(s)
	}
	if l.Intact(web, a.Key) {
		t.Error("intact, and nothing is expected")
	}
	l.Expect(web, []apply.State{but(c, 10, damaged), but(a, 10, damaged), b})
	if got := l.drifts(web); got != "a, c" {
		t.Errorf("damaged: %q, want them in the order of their names", got)
	}
	l.Expect(web, []apply.State{b})
	if got := l.drifts(web); got != "" {
		t.Errorf("damaged: %q, though it is no more expected", got)
	}
	l.observe(new(but(a, 11, damaged)), nil)
	if len(l.told) != 0 {
		t.Error("told of an object that is no more expected")
	}
	// To expect no objects is not the same as to expect nothing.
	l.Expect(web, []apply.State{})
	if !l.RestoreExpected(web, Recorded{}) {
		t.Error("a release without objects is not known")
	}
	l.Expect(web, nil)
	if l.RestoreExpected(web, Recorded{}) {
		t.Error("known, and nothing is expected")
	}
}

func TestRepairedOfAnUnknownOwner(t *testing.T) {
	l := newListened()
	l.ExpectOne(web, applied("a"))
	if got := l.drifts(web); got != "" {
		t.Errorf("damaged: %q", got)
	}
	l.observe(new(but(applied("a"), 11, damaged)), nil)
	if len(l.told) != 0 {
		t.Errorf("told of %q", l.told)
	}
}

func TestRecall(t *testing.T) {
	a, b := applied("a"), applied("b")
	digest := apply.Digest([]apply.State{b, a})
	for _, test := range []struct {
		name   string
		digest string
		sees   []apply.State
		want   bool
	}{
		{"as the record says", digest, []apply.State{a, b}, true},
		{"later, but as the record says", digest, []apply.State{but(a, 99), but(b, 98)}, true},
		{"made again with the same fields", digest, []apply.State{but(a, 99, recreated), b}, true},
		{"with a copy of the labels beside", digest, []apply.State{a, b, but(applied("c"), 11, copied)}, true},
		{"with an object of another owner beside", digest, []apply.State{a, b, but(applied("c"), 11, others)}, true},
		{"one is damaged", digest, []apply.State{a, but(b, 11, damaged)}, false},
		{"one is gone", digest, []apply.State{a}, false},
		{"one has lost its label", digest, []apply.State{a, but(b, 11, ownerless)}, false},
		{"one is no more ours", digest, []apply.State{a, but(b, 11, copied)}, false},
		{"one more is ours", digest, []apply.State{a, b, applied("c")}, false},
		{"nothing is there", digest, nil, false},
		{"the record says nothing", "", []apply.State{a, b}, false},
		{"the record says nothing and there is nothing", "", nil, false},
		{"the record says that there is nothing", apply.Digest(nil), nil, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newListened()
			for _, s := range test.sees {
				l.observe(new(s), nil)
			}
			if got := l.RestoreExpected(web, Recorded{Digest: test.digest}); got != test.want {
				t.Fatalf("recalled: %v, want %v", got, test.want)
			}
			if got := l.drifts(web); got != "" {
				t.Errorf("damaged: %q", got)
			}
			if !test.want {
				return
			}
			// What is known is not asked for again.
			if !l.RestoreExpected(web, Recorded{Digest: "another"}) {
				t.Error("forgotten")
			}
			for _, s := range test.sees {
				if s.Managed && s.Owner == web != l.Intact(web, s.Key) {
					t.Errorf("%s is intact: %v", s.Key, l.Intact(web, s.Key))
				}
			}
			l.observe(new(but(applied("a"), 100, damaged)), nil)
			if want := len(test.sees) > 0; want != (l.drifts(web) == "a") {
				t.Errorf("damaged: %q", l.drifts(web))
			}
		})
	}
}

// TestRecallWithoutWhatWasKept: what the release has dropped, and was to be kept,
// still has its label. It is expected of it no more.
func TestRecallWithoutWhatWasKept(t *testing.T) {
	a, b := applied("a"), but(applied("b"), 10, kept)
	left := func(name string) apply.State { return but(applied(name), 11, kept) }
	for _, test := range []struct {
		name string
		sees []apply.State
		want bool
	}{
		{"one was dropped", []apply.State{a, b, left("c")}, true},
		{"three were", []apply.State{left("0"), a, left("c"), b, left("d")}, true},
		{"one was dropped, and the one that is named is gone", []apply.State{a, left("c")}, false},
		{"one was dropped, and another is damaged", []apply.State{but(a, 11, damaged), b, left("c")}, false},
		{"one was dropped that is not kept", []apply.State{a, b, left("c"), applied("d")}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newListened()
			for _, s := range test.sees {
				l.observe(new(s), nil)
			}
			if got := l.RestoreExpected(web, Recorded{Digest: apply.Digest([]apply.State{a, b})}); got != test.want {
				t.Fatalf("recalled: %v, want %v", got, test.want)
			}
			l.observe(new(but(left("c"), 12, damaged)), nil)
			if len(l.told) > 0 || l.Intact(web, left("c").Key) {
				t.Errorf("it is expected still; told of %q", l.told)
			}
			if test.want && (!l.Intact(web, a.Key) || !l.Intact(web, b.Key)) {
				t.Error("what the record names is not known")
			}
		})
	}
}

// An autoscaler may scale while nobody looks. Where it goes and a person scales
// instead, that is damage.
func TestRecallOfWhatIsScaled(t *testing.T) {
	const full, without = `{"f:spec":{"f:paused":{},"f:replicas":{}}}`, `{"f:spec":{"f:paused":{}}}`
	state := func(version, fields string, entries ...metav1.ManagedFieldsEntry) apply.State {
		return apply.StateOf(schema.GroupKind{Group: "apps", Kind: "Deployment"}, live("a", version, fields, entries...))
	}
	digest := apply.Digest([]apply.State{state("10", full), applied("b")})
	begin := func(s apply.State) *listened {
		l := newListened()
		l.observe(new(applied("b")), nil)
		l.observe(new(s), nil)
		return l
	}
	l := begin(state("11", without, scaledBy("kube-controller-manager")))
	if !l.RestoreExpected(web, Recorded{Digest: digest}) || l.drifts(web) != "" {
		t.Fatalf("scaled by an autoscaler: damaged: %q", l.drifts(web))
	}
	l.observe(new(state("12", without, scaledBy("kubectl"))), nil)
	if got := l.drifts(web); got != "a" || len(l.told) != 1 {
		t.Errorf("then by a person: damaged: %q, told of %q", got, l.told)
	}
	if l := begin(state("11", without, scaledBy("kubectl"))); l.RestoreExpected(web, Recorded{Digest: digest}) {
		t.Error("scaled by a person: recalled")
	}
}

// scaledBy is what stands for somebody who wrote replicas through scale.
func scaledBy(manager string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "scale", FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`),
	}
}
