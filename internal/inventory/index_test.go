package inventory

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
)

// The owner of most objects here, and another one.
const (
	web   types.UID = "web"
	other types.UID = "other"
)

// applied is an object as it was last applied for web: the first of its name,
// at version 10.
func applied(name string) apply.State {
	return apply.State{
		Key:             apply.Key{Kind: "ConfigMap", Namespace: "apps", Name: name},
		UID:             types.UID(name + "-1"),
		ResourceVersion: "10",
		Owner:           web,
		Managed:         true,
		Fingerprint:     1,
		Applied:         "a",
	}
}

// but returns the state with changes, at a later version.
func but(s apply.State, version int, changes ...func(*apply.State)) apply.State {
	s.ResourceVersion = strconv.Itoa(version)
	for _, change := range changes {
		change(&s)
	}
	return s
}

// What may become of an object.
func damaged(s *apply.State)      { s.Fingerprint++ }
func ownerless(s *apply.State)    { s.Owner = "" }
func others(s *apply.State)       { s.Owner = other }
func recreated(s *apply.State)    { s.UID += "'" }
func copied(s *apply.State)       { s.Managed, s.Fingerprint = false, 0 }
func deleting(s *apply.State)     { s.Deleting = true }
func kept(s *apply.State)         { s.Kept = true }
func ignoredDrift(s *apply.State) { s.Ignored = true }

// listened is an index that remembers whom it told about.
type listened struct {
	*Index
	told []types.UID
	// changed are those of which an object's health has changed.
	changed []types.UID
}

func newListened() *listened {
	l := &listened{}
	l.Index = NewIndex(func(owner types.UID) {
		// To be called under a lock would be a deadlock here.
		l.Drift(owner)
		l.told = append(l.told, owner)
	}, func(owner types.UID) {
		l.Health(owner, created)
		l.changed = append(l.changed, owner)
	})
	l.SetReleaseNamespace(web, "apps")
	l.SetReleaseNamespace(other, "apps")
	return l
}

// drifts names what is damaged.
func (l *listened) drifts(owner types.UID) string {
	found := l.Drift(owner)
	names := make([]string, len(found))
	for i, d := range found {
		names[i] = d.Name
		if d.Gone {
			names[i] += " gone"
		}
	}
	return strings.Join(names, ", ")
}

func (l *listened) owned(owner types.UID) string {
	found := l.OwnedBy(owner)
	names := make([]string, len(found))
	for i, s := range found {
		names[i] = s.Name
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// An event is what a watch says, or what this process does.
type event func(*listened)

func sees(s apply.State) event    { return func(l *listened) { l.observe(&s, nil) } }
func loses(s apply.State) event   { return func(l *listened) { l.observeDeletion(new(s), false) } }
func misses(s apply.State) event  { return func(l *listened) { l.observeDeletion(new(s), true) } }
func puts(s apply.State) event    { return func(l *listened) { l.Put(s) } }
func removes(s apply.State) event { return func(l *listened) { l.Remove(s) } }
func repairs(s apply.State) event {
	return func(l *listened) { l.Put(s); l.ExpectOne(s.Owner, s) }
}

// Every case begins with the object a applied for web and expected to be so.
func TestIndex(t *testing.T) {
	a := applied("a")
	for _, test := range []struct {
		name   string
		events []event
		// drift and owned are those of web in the end.
		drift, owned string
		// told counts the calls that were made for.
		told int
	}{
		{name: "nothing happens", owned: "a"},
		{name: "the watch tells of our own apply", events: []event{sees(a)}, owned: "a"},
		{name: "it tells twice", events: []event{sees(a), sees(a)}, owned: "a"},
		{name: "it tells of what was before our apply", events: []event{sees(but(a, 9, damaged))}, owned: "a"},
		{name: "it tells of what was before our apply, without our label", events: []event{sees(but(a, 9, ownerless, copied))}, owned: "a"},

		{name: "a field is changed", events: []event{sees(but(a, 11, damaged))}, drift: "a", owned: "a", told: 1},
		{name: "a field is changed, told twice", events: []event{sees(but(a, 11, damaged)), sees(but(a, 11, damaged))}, drift: "a", owned: "a", told: 1},
		{name: "a field is changed and changed back", events: []event{sees(but(a, 11, damaged)), sees(but(a, 12))}, owned: "a", told: 1},
		{name: "what is not ours is changed", events: []event{sees(but(a, 11))}, owned: "a"},
		{name: "a change is repaired", events: []event{sees(but(a, 11, damaged)), repairs(but(a, 12))}, owned: "a", told: 1},
		{name: "a change is repaired, and the watch is late", events: []event{repairs(but(a, 12)), sees(but(a, 11, damaged)), sees(but(a, 12))}, owned: "a"},
		{name: "a change is repaired to something else", events: []event{sees(but(a, 11, damaged)), repairs(but(a, 12, damaged))}, owned: "a", told: 1},
		{name: "it is damaged after the repair", events: []event{repairs(but(a, 12)), sees(but(a, 13, damaged))}, drift: "a", owned: "a", told: 1},
		{name: "it was put and is not expected yet", events: []event{puts(but(a, 12, damaged))}, drift: "a", owned: "a"},

		{name: "the owner label is lost", events: []event{sees(but(a, 11, ownerless))}, drift: "a", told: 1},
		{name: "the owner label is another's", events: []event{sees(but(a, 11, others))}, drift: "a", told: 1},
		{name: "the owner label is lost and brought back", events: []event{sees(but(a, 11, ownerless)), repairs(but(a, 12))}, owned: "a", told: 1},
		{name: "managed fields are wiped", events: []event{sees(but(a, 11, copied))}, drift: "a gone", told: 1},

		{name: "it is deleted", events: []event{loses(but(a, 11))}, drift: "a gone", told: 1},
		{name: "a list misses it", events: []event{misses(a)}, drift: "a gone", told: 1},
		{name: "it is deleted and made again by us", events: []event{loses(but(a, 11)), repairs(but(a, 12, recreated))}, owned: "a", told: 1},
		{name: "it is deleted and made again by us before the watch tells", events: []event{repairs(but(a, 12, recreated)), loses(but(a, 11)), sees(but(a, 12, recreated))}, owned: "a"},
		{name: "a list misses it after we made it again", events: []event{repairs(but(a, 12, recreated)), misses(a)}, owned: "a"},
		{name: "its damage is told after we made it again", events: []event{repairs(but(a, 13, recreated)), sees(but(a, 11, damaged)), loses(but(a, 12)), sees(but(a, 13, recreated))}, owned: "a"},
		{name: "it is deleted and made again by another", events: []event{loses(but(a, 11)), sees(but(a, 12, recreated, copied))}, drift: "a gone", told: 2},
		{name: "a list shows another in its place", events: []event{sees(but(a, 12, recreated, copied))}, drift: "a gone", told: 1},
		{name: "it is restored from a backup", events: []event{loses(but(a, 11)), sees(but(a, 12, recreated))}, owned: "a", told: 1},

		{name: "it is deleted before we hear that we applied it", events: []event{sees(but(a, 11)), loses(but(a, 12)), repairs(but(a, 11))}, drift: "a gone", told: 1},
		{name: "a list misses it before we hear that we applied it", events: []event{sees(but(a, 11)), misses(but(a, 11)), repairs(but(a, 11))}, drift: "a gone", told: 1},
		{name: "the label is lost before we hear that we applied it", events: []event{sees(but(a, 11)), loses(but(a, 12)), repairs(but(a, 11)), repairs(but(a, 13))}, owned: "a", told: 1},

		{name: "the operator label is lost", events: []event{loses(but(a, 11))}, drift: "a gone", told: 1},
		{name: "the operator label is lost and brought back by us", events: []event{loses(but(a, 11)), repairs(but(a, 12)), sees(but(a, 12))}, owned: "a", told: 1},
		{name: "our apply is faster than the word of the lost label", events: []event{repairs(but(a, 12)), loses(but(a, 11)), sees(but(a, 12))}, owned: "a"},
		{name: "the label is lost again after that", events: []event{repairs(but(a, 12)), loses(but(a, 11)), sees(but(a, 12)), loses(but(a, 13))}, drift: "a gone", told: 1},

		{name: "it is on its way out", events: []event{sees(but(a, 11, deleting, damaged))}, owned: "a"},
		{name: "it is on its way out, then gone", events: []event{sees(but(a, 11, deleting)), loses(but(a, 12, deleting))}, drift: "a gone", told: 1},
		{name: "its damage is to be ignored", events: []event{sees(but(a, 11, ignoredDrift, damaged))}, owned: "a"},
		{name: "its damage is no more to be ignored", events: []event{sees(but(a, 11, ignoredDrift, damaged)), sees(but(a, 12, damaged))}, drift: "a", owned: "a", told: 1},

		{name: "we delete it", events: []event{removes(a)}, drift: "a gone"},
		{name: "we delete it and the watch tells", events: []event{removes(a), loses(but(a, 11))}, drift: "a gone", told: 1},
		{name: "we delete it and the watch tells what was before", events: []event{removes(a), sees(but(a, 11))}, drift: "a gone"},
		{name: "we delete it and it has a finalizer", events: []event{removes(a), sees(but(a, 11, deleting))}, owned: "a"},
		{name: "we delete it and hear first that it has a finalizer", events: []event{sees(but(a, 11, deleting)), removes(a)}, owned: "a"},
		{name: "we delete it and make it again", events: []event{removes(a), repairs(but(a, 12, recreated)), loses(but(a, 11)), sees(but(a, 12, recreated))}, owned: "a"},
		{name: "we delete what another has replaced", events: []event{sees(but(a, 11, recreated)), removes(a)}, owned: "a"},

		{name: "a copy of our labels appears", events: []event{sees(but(applied("b"), 11, copied))}, owned: "a"},
		{name: "a copy of our labels goes", events: []event{sees(but(applied("b"), 11, copied)), loses(but(applied("b"), 12, copied))}, owned: "a"},
		{name: "an object of ours that nobody expects", events: []event{sees(but(applied("b"), 11))}, owned: "a, b"},
		{name: "one goes that nobody knew", events: []event{loses(but(applied("b"), 11))}, owned: "a"},
		{name: "an object of another owner", events: []event{sees(but(applied("b"), 11, others))}, owned: "a"},
		{name: "a version that is no number is news", events: []event{func(l *listened) {
			s := but(a, 0, damaged)
			s.ResourceVersion = "x"
			l.observe(new(s), nil)
		}}, drift: "a", owned: "a", told: 1},
		{name: "it goes at a version that is no number", events: []event{func(l *listened) {
			s := a
			s.ResourceVersion = "x"
			l.observeDeletion(new(s), false)
		}}, drift: "a gone", told: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newListened()
			l.Put(a)
			l.Expect(web, []apply.State{a})
			for _, event := range test.events {
				event(l)
			}
			if got := l.drifts(web); got != test.drift {
				t.Errorf("damaged: %q, want %q", got, test.drift)
			}
			if got := l.Intact(web, a.Key); got != (test.drift == "") {
				t.Errorf("a is intact: %v", got)
			}
			if got := l.owned(web); got != test.owned {
				t.Errorf("owned: %q, want %q", got, test.owned)
			}
			if len(l.told) != test.told || slices.ContainsFunc(l.told, func(uid types.UID) bool { return uid != web }) {
				t.Errorf("told of %q, want %d times of web", l.told, test.told)
			}
		})
	}
}

func TestIndexHoldsNothingOfWhatIsGone(t *testing.T) {
	l := newListened()
	for i := range 20 {
		a, b := applied("a"+strconv.Itoa(i)), applied("b"+strconv.Itoa(i))
		l.Put(a)
		l.observe(new(b), nil)
		l.Expect(web, []apply.State{a, b})
		l.Remove(a)
		l.observeDeletion(new(but(a, 11)), false)
		l.observeDeletion(new(but(b, 11)), false)
	}
	l.Forget(web)
	l.Forget(other)
	if len(l.objects) > 0 || len(l.owners) > 0 {
		t.Errorf("the index holds %d objects and %d owners", len(l.objects), len(l.owners))
	}
}

func TestDeparturesAreBounded(t *testing.T) {
	l := newListened()
	at := func(i int) apply.State { return but(applied("a"+strconv.Itoa(i)), 10+i) }
	n := maxTombstones
	for i := range 3 * n {
		l.observeDeletion(new(at(i)), false)
		l.observeDeletion(new(at(i)), false)
	}
	if got := l.tombstones.Len(); got != n {
		t.Errorf("%d departures are known, want %d", got, n)
	}
	for i, want := range map[int]bool{0: false, 2*n - 1: false, 2 * n: true, 3*n - 1: true} {
		if got := l.deletedSince(but(at(i), 9)); got != want {
			t.Errorf("departure %d is known: %v, want %v", i, got, want)
		}
	}
}

func TestGet(t *testing.T) {
	l := newListened()
	a := applied("a")
	if _, ok := l.Get(a.Key); ok {
		t.Error("an empty index knows an object")
	}
	l.observe(new(but(a, 11, copied)), nil)
	if got, ok := l.Get(a.Key); !ok || got != but(a, 11, copied) {
		t.Errorf("got %+v, %v", got, ok)
	}
}

func TestForget(t *testing.T) {
	l := newListened()
	i := Inventory{Index: l.Index, Watches: NewWatches(l.Index, nil)}
	a, b := applied("a"), but(applied("b"), 10, others)
	for _, s := range []apply.State{a, b} {
		i.Put(s)
		i.Expect(s.Owner, []apply.State{s})
	}
	i.Forget(web)
	i.Forget("unknown")
	l.observeDeletion(new(but(a, 11)), false)
	if len(l.told) != 0 || l.drifts(web) != "" || i.RestoreExpected(web, Recorded{}) {
		t.Errorf("told of %q, damaged: %q", l.told, l.drifts(web))
	}
	l.observeDeletion(new(but(b, 11)), false)
	if !slices.Equal(l.told, []types.UID{other}) || l.drifts(other) != "b gone" {
		t.Errorf("told of %q, damaged: %q, want that of the other owner", l.told, l.drifts(other))
	}
}

// live is an object's metadata as a watch delivers it.
func live(name, version, fields string, entries ...metav1.ManagedFieldsEntry) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "apps", Name: name, UID: types.UID(name + "-1"), ResourceVersion: version,
			Labels:      map[string]string{api.LabelOwnerUID: string(web), api.LabelOperator: "chartwright"},
			Annotations: map[string]string{api.AnnotationApplied: "a"},
		},
	}
	if fields != "" {
		entries = append(entries, metav1.ManagedFieldsEntry{
			Manager: api.FieldManager, Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(fields),
		})
	}
	m.ManagedFields = entries
	return m
}

// The handler is what stands between a cache and the index.
func TestHandler(t *testing.T) {
	const full, without = `{"f:spec":{"f:paused":{},"f:replicas":{}}}`, `{"f:spec":{"f:paused":{}}}`
	deployment := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	begin := live("a", "10", full)
	for _, test := range []struct {
		name string
		tell func(cache.ResourceEventHandler)
		want string
	}{
		{"added", func(h cache.ResourceEventHandler) { h.OnAdd(compacted(t, begin), true) }, ""},
		{"updated", func(h cache.ResourceEventHandler) {
			h.OnUpdate(compacted(t, begin), compacted(t, live("a", "11", without)))
		}, "a"},
		{"scaled by an autoscaler", func(h cache.ResourceEventHandler) {
			h.OnUpdate(compacted(t, begin), compacted(t, live("a", "11", without, scaledBy("kube-controller-manager"))))
		}, ""},
		{"scaled by a person", func(h cache.ResourceEventHandler) {
			h.OnUpdate(compacted(t, begin), compacted(t, live("a", "11", without, scaledBy("kubectl"))))
		}, "a"},
		{"deleted", func(h cache.ResourceEventHandler) { h.OnDelete(compacted(t, live("a", "11", full))) }, "a gone"},
		{"deleted, told late", func(h cache.ResourceEventHandler) { h.OnDelete(compacted(t, live("a", "9", full))) }, ""},
		{"missed by a list", func(h cache.ResourceEventHandler) {
			h.OnDelete(cache.DeletedFinalStateUnknown{Key: "apps/a", Obj: compacted(t, live("a", "9", full))})
		}, "a gone"},
		{"what is no object", func(h cache.ResourceEventHandler) {
			h.OnAdd("a", false)
			h.OnUpdate("a", "b")
			h.OnDelete("a")
			h.OnDelete(cache.DeletedFinalStateUnknown{Key: "apps/a"})
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newListened()
			s := apply.StateOf(deployment, begin)
			l.Put(s)
			l.Expect(web, []apply.State{s})
			test.tell(l.handler())
			if got := l.drifts(web); got != test.want {
				t.Errorf("damaged: %q, want %q", got, test.want)
			}
		})
	}
}

func compacted(t *testing.T, m *metav1.PartialObjectMetadata) cachedObject {
	t.Helper()
	object, err := (HealthConfig{}).transform(m)
	if err != nil {
		t.Fatal(err)
	}
	d, ok := object.(cachedObject)
	if !ok {
		t.Fatalf("compacted to %T", object)
	}
	return d
}

func TestCompact(t *testing.T) {
	m := live("a", "10", `{"f:spec":{}}`)
	m.OwnerReferences = []metav1.OwnerReference{{Name: "a"}}
	m.Finalizers = []string{"a"}
	d := compacted(t, m)
	want := metav1.ObjectMeta{Namespace: "apps", Name: "a", UID: "a-1", ResourceVersion: "10"}
	if diff := cmp.Diff(metav1.Object(&want), d.GetObjectMeta()); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	if want := apply.StateOf(schema.GroupKind{Group: "apps", Kind: "Deployment"}, m); *d.state != want {
		t.Errorf("the state is %+v, want %+v", d.state, want)
	}
	for _, what := range []any{cache.DeletedFinalStateUnknown{Key: "a"}, "a", nil, d} {
		if got, err := (HealthConfig{}).transform(what); err != nil || fmt.Sprint(got) != fmt.Sprint(what) {
			t.Errorf("compact of %v: %v, %v", what, got, err)
		}
	}
}
