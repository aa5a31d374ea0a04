package inventory

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
)

// Owners of the objects in the tests. Most objects belong to web.
const (
	web   types.UID = "web"
	other types.UID = "other"
)

// applied returns the state of an object that was applied for web, at version 10.
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

// but returns a changed copy of a state, with the given version.
func but(s apply.State, version int, changes ...func(*apply.State)) apply.State {
	s.ResourceVersion = strconv.Itoa(version)
	for _, change := range changes {
		change(&s)
	}
	return s
}

// Changes of an object.
func fieldChanged(s *apply.State) { s.Fingerprint++ }
func withoutOwner(s *apply.State) { s.Owner = "" }
func otherOwner(s *apply.State)   { s.Owner = other }
func recreated(s *apply.State)    { s.UID += "'" }
func copied(s *apply.State)       { s.Managed, s.Fingerprint = false, 0 }
func deleting(s *apply.State)     { s.Deleting = true }
func kept(s *apply.State)         { s.Kept = true }
func ignoredDrift(s *apply.State) { s.Ignored = true }

// recordingIndex is an index that records the notified owners.
type recordingIndex struct {
	*Index
	notified []types.UID
	// changed are the owners of objects whose health has changed.
	changed []types.UID
}

func newRecordingIndex() *recordingIndex {
	l := &recordingIndex{}
	l.Index = NewIndex(func(owner types.UID) {
		// Under a lock, this call would deadlock.
		l.Drift(owner)
		l.notified = append(l.notified, owner)
	}, func(owner types.UID) {
		l.Health(owner, created)
		l.changed = append(l.changed, owner)
	})
	l.SetReleaseNamespace(web, "apps")
	l.SetReleaseNamespace(other, "apps")
	return l
}

// driftNames returns the names of the objects that have drifted.
func (l *recordingIndex) driftNames(owner types.UID) string {
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

func (l *recordingIndex) owned(owner types.UID) string {
	found := l.OwnedBy(owner)
	names := make([]string, len(found))
	for i, s := range found {
		names[i] = s.Name
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// event is a watch event or an action of this process.
type event func(*recordingIndex)

func observes(s apply.State) event { return func(l *recordingIndex) { l.observe(&s, nil) } }
func observesDeletion(s apply.State) event {
	return func(l *recordingIndex) { l.observeDeletion(new(s), false) }
}
func missesInList(s apply.State) event {
	return func(l *recordingIndex) { l.observeDeletion(new(s), true) }
}
func puts(s apply.State) event    { return func(l *recordingIndex) { l.Put(s) } }
func removes(s apply.State) event { return func(l *recordingIndex) { l.Remove(s) } }
func applies(s apply.State) event {
	return func(l *recordingIndex) { l.Put(s); l.ExpectOne(s.Owner, s) }
}

// Every case begins with the object a, which was applied for web and is expected.
func TestIndex_Events(t *testing.T) {
	a := applied("a")
	for _, test := range []struct {
		name   string
		events []event
		// drift and owned are the drift and the objects of web at the end.
		drift, owned string
		// notified is the number of drift notifications.
		notified int
	}{
		{name: "no events", owned: "a"},
		{name: "apply observed", events: []event{observes(a)}, owned: "a"},
		{name: "apply observed twice", events: []event{observes(a), observes(a)}, owned: "a"},
		{name: "state before the apply observed", events: []event{observes(but(a, 9, fieldChanged))}, owned: "a"},
		{name: "state before the apply observed, without the label", events: []event{observes(but(a, 9, withoutOwner, copied))}, owned: "a"},

		{name: "field changed", events: []event{observes(but(a, 11, fieldChanged))}, drift: "a", owned: "a", notified: 1},
		{name: "field changed, observed twice", events: []event{observes(but(a, 11, fieldChanged)), observes(but(a, 11, fieldChanged))}, drift: "a", owned: "a", notified: 1},
		{name: "field changed and changed back", events: []event{observes(but(a, 11, fieldChanged)), observes(but(a, 12))}, owned: "a", notified: 1},
		{name: "field of another manager changed", events: []event{observes(but(a, 11))}, owned: "a"},
		{name: "change corrected", events: []event{observes(but(a, 11, fieldChanged)), applies(but(a, 12))}, owned: "a", notified: 1},
		{name: "change corrected before it was observed", events: []event{applies(but(a, 12)), observes(but(a, 11, fieldChanged)), observes(but(a, 12))}, owned: "a"},
		{name: "change corrected to a different state", events: []event{observes(but(a, 11, fieldChanged)), applies(but(a, 12, fieldChanged))}, owned: "a", notified: 1},
		{name: "field changed after a correction", events: []event{applies(but(a, 12)), observes(but(a, 13, fieldChanged))}, drift: "a", owned: "a", notified: 1},
		{name: "applied and not expected yet", events: []event{puts(but(a, 12, fieldChanged))}, drift: "a", owned: "a"},

		{name: "owner label removed", events: []event{observes(but(a, 11, withoutOwner))}, drift: "a", notified: 1},
		{name: "owner label of another owner", events: []event{observes(but(a, 11, otherOwner))}, drift: "a", notified: 1},
		{name: "owner label removed and restored", events: []event{observes(but(a, 11, withoutOwner)), applies(but(a, 12))}, owned: "a", notified: 1},
		{name: "managed fields removed", events: []event{observes(but(a, 11, copied))}, drift: "a gone", notified: 1},

		{name: "deleted", events: []event{observesDeletion(but(a, 11))}, drift: "a gone", notified: 1},
		{name: "missing in a list", events: []event{missesInList(a)}, drift: "a gone", notified: 1},
		{name: "deleted and recreated by this process", events: []event{observesDeletion(but(a, 11)), applies(but(a, 12, recreated))}, owned: "a", notified: 1},
		{name: "deleted and recreated by this process before it was observed", events: []event{applies(but(a, 12, recreated)), observesDeletion(but(a, 11)), observes(but(a, 12, recreated))}, owned: "a"},
		{name: "missing in a list after this process recreated it", events: []event{applies(but(a, 12, recreated)), missesInList(a)}, owned: "a"},
		{name: "change observed after this process recreated it", events: []event{applies(but(a, 13, recreated)), observes(but(a, 11, fieldChanged)), observesDeletion(but(a, 12)), observes(but(a, 13, recreated))}, owned: "a"},
		{name: "deleted and recreated by another client", events: []event{observesDeletion(but(a, 11)), observes(but(a, 12, recreated, copied))}, drift: "a gone", notified: 2},
		{name: "replaced by another client", events: []event{observes(but(a, 12, recreated, copied))}, drift: "a gone", notified: 1},
		{name: "restored from a backup", events: []event{observesDeletion(but(a, 11)), observes(but(a, 12, recreated))}, owned: "a", notified: 1},

		{name: "deleted before the response to the apply", events: []event{observes(but(a, 11)), observesDeletion(but(a, 12)), applies(but(a, 11))}, drift: "a gone", notified: 1},
		{name: "missing in a list before the response to the apply", events: []event{observes(but(a, 11)), missesInList(but(a, 11)), applies(but(a, 11))}, drift: "a gone", notified: 1},
		{name: "label removed before the response to the apply", events: []event{observes(but(a, 11)), observesDeletion(but(a, 12)), applies(but(a, 11)), applies(but(a, 13))}, owned: "a", notified: 1},

		{name: "operator label removed", events: []event{observesDeletion(but(a, 11))}, drift: "a gone", notified: 1},
		{name: "operator label removed and restored by this process", events: []event{observesDeletion(but(a, 11)), applies(but(a, 12)), observes(but(a, 12))}, owned: "a", notified: 1},
		{name: "operator label restored before its removal was observed", events: []event{applies(but(a, 12)), observesDeletion(but(a, 11)), observes(but(a, 12))}, owned: "a"},
		{name: "operator label restored and removed again", events: []event{applies(but(a, 12)), observesDeletion(but(a, 11)), observes(but(a, 12)), observesDeletion(but(a, 13))}, drift: "a gone", notified: 1},

		{name: "deletion timestamp set", events: []event{observes(but(a, 11, deleting, fieldChanged))}, owned: "a"},
		{name: "deletion timestamp set, then deleted", events: []event{observes(but(a, 11, deleting)), observesDeletion(but(a, 12, deleting))}, drift: "a gone", notified: 1},
		{name: "drift ignored", events: []event{observes(but(a, 11, ignoredDrift, fieldChanged))}, owned: "a"},
		{name: "drift no longer ignored", events: []event{observes(but(a, 11, ignoredDrift, fieldChanged)), observes(but(a, 12, fieldChanged))}, drift: "a", owned: "a", notified: 1},

		{name: "deleted by this process", events: []event{removes(a)}, drift: "a gone"},
		{name: "deleted by this process, and observed", events: []event{removes(a), observesDeletion(but(a, 11))}, drift: "a gone", notified: 1},
		{name: "deleted by this process, and an older state observed", events: []event{removes(a), observes(but(a, 11))}, drift: "a gone"},
		{name: "deleted by this process, with a finalizer", events: []event{removes(a), observes(but(a, 11, deleting))}, owned: "a"},
		{name: "deleted by this process, with a finalizer that was observed before", events: []event{observes(but(a, 11, deleting)), removes(a)}, owned: "a"},
		{name: "deleted and recreated by this process, observed later", events: []event{removes(a), applies(but(a, 12, recreated)), observesDeletion(but(a, 11)), observes(but(a, 12, recreated))}, owned: "a"},
		{name: "deleted by this process after another client replaced it", events: []event{observes(but(a, 11, recreated)), removes(a)}, owned: "a"},

		{name: "object with copied labels created", events: []event{observes(but(applied("b"), 11, copied))}, owned: "a"},
		{name: "object with copied labels deleted", events: []event{observes(but(applied("b"), 11, copied)), observesDeletion(but(applied("b"), 12, copied))}, owned: "a"},
		{name: "owned object that is not expected", events: []event{observes(but(applied("b"), 11))}, owned: "a, b"},
		{name: "unknown object deleted", events: []event{observesDeletion(but(applied("b"), 11))}, owned: "a"},
		{name: "object of another owner", events: []event{observes(but(applied("b"), 11, otherOwner))}, owned: "a"},
		{name: "resource version that is not a number", events: []event{func(l *recordingIndex) {
			s := but(a, 0, fieldChanged)
			s.ResourceVersion = "x"
			l.observe(new(s), nil)
		}}, drift: "a", owned: "a", notified: 1},
		{name: "deleted at a resource version that is not a number", events: []event{func(l *recordingIndex) {
			s := a
			s.ResourceVersion = "x"
			l.observeDeletion(new(s), false)
		}}, drift: "a gone", notified: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newRecordingIndex()
			l.Put(a)
			l.Expect(web, []apply.State{a})
			for _, event := range test.events {
				event(l)
			}
			if got := l.driftNames(web); got != test.drift {
				t.Errorf("got drift %q, want %q", got, test.drift)
			}
			if got := l.Intact(web, a.Key); got != (test.drift == "") {
				t.Errorf("a is intact: %v", got)
			}
			if got := l.owned(web); got != test.owned {
				t.Errorf("owned: %q, want %q", got, test.owned)
			}
			if len(l.notified) != test.notified || slices.ContainsFunc(l.notified, func(uid types.UID) bool { return uid != web }) {
				t.Errorf("got notifications for %q, want %d for web", l.notified, test.notified)
			}
		})
	}
}

func TestIndex_DropsDeletedObjects(t *testing.T) {
	l := newRecordingIndex()
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

// TestIndex_RemovedObjectThatStays: an uninstall may leave an object without a change. If another
// release, or the next one, applies it, the watch delivers nothing.
func TestIndex_RemovedObjectThatStays(t *testing.T) {
	l := newRecordingIndex()
	a := applied("a")
	l.observe(new(a), &Health{Message: "old"})
	l.Remove(a)
	if _, known := l.Get(a.Key); known {
		t.Error("it is still known")
	}
	l.observe(new(but(a, 11)), &Health{Message: "new"})
	if _, known := l.Get(a.Key); known {
		t.Error("an event makes it known again")
	}
	l.Put(but(a, 11))
	if health, _ := l.healthOf(a.Key, time.Now()); health.Message != "new" {
		t.Errorf("the health is %+v", health)
	}
	l.observe(new(but(a, 12)), &Health{Message: "newer"})
	if live, _ := l.Get(a.Key); live.ResourceVersion != "12" {
		t.Errorf("the version is %s", live.ResourceVersion)
	}
}

func TestTombstones_AreLimited(t *testing.T) {
	l := newRecordingIndex()
	at := func(i int) apply.State { return but(applied("a"+strconv.Itoa(i)), 10+i) }
	n := maxTombstones
	for i := range 3 * n {
		l.observeDeletion(new(at(i)), false)
		l.observeDeletion(new(at(i)), false)
	}
	if got := l.tombstones.Len(); got != n {
		t.Errorf("%d deletions are known, want %d", got, n)
	}
	for i, want := range map[int]bool{0: false, 2*n - 1: false, 2 * n: true, 3*n - 1: true} {
		if got := l.deletedSince(but(at(i), 9)); got != want {
			t.Errorf("deletion %d is known: %v, want %v", i, got, want)
		}
	}
}

func TestGet_ReturnsObservedState(t *testing.T) {
	l := newRecordingIndex()
	a := applied("a")
	if _, ok := l.Get(a.Key); ok {
		t.Error("the empty index has an object")
	}
	l.observe(new(but(a, 11, copied)), nil)
	if got, ok := l.Get(a.Key); !ok || got != but(a, 11, copied) {
		t.Errorf("got %+v, %v", got, ok)
	}
}

func TestForget_DropsOwner(t *testing.T) {
	l := newRecordingIndex()
	i := Inventory{Index: l.Index, Watches: NewWatches(l.Index, nil)}
	a, b := applied("a"), but(applied("b"), 10, otherOwner)
	for _, s := range []apply.State{a, b} {
		i.Put(s)
		i.Expect(s.Owner, []apply.State{s})
	}
	i.Forget(web)
	i.Forget("unknown")
	l.observeDeletion(new(but(a, 11)), false)
	if len(l.notified) != 0 || l.driftNames(web) != "" || i.RestoreExpected(web, Recorded{}) {
		t.Errorf("got notifications for %q, drift %q", l.notified, l.driftNames(web))
	}
	l.observeDeletion(new(but(b, 11)), false)
	if !slices.Equal(l.notified, []types.UID{other}) || l.driftNames(other) != "b gone" {
		t.Errorf("got notifications for %q, drift %q, want those of the other owner", l.notified, l.driftNames(other))
	}
}

// live returns the metadata of an object that a watch delivers.
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

func TestHandler_UpdatesIndex(t *testing.T) {
	const full, without = `{"f:spec":{"f:paused":{},"f:replicas":{}}}`, `{"f:spec":{"f:paused":{}}}`
	deployment := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	begin := live("a", "10", full)
	for _, test := range []struct {
		name string
		tell func(cache.ResourceEventHandler)
		want string
	}{
		{"added", func(h cache.ResourceEventHandler) { h.OnAdd(transformed(t, begin), true) }, ""},
		{"updated", func(h cache.ResourceEventHandler) {
			h.OnUpdate(transformed(t, begin), transformed(t, live("a", "11", without)))
		}, "a"},
		{"scaled by an autoscaler", func(h cache.ResourceEventHandler) {
			h.OnUpdate(transformed(t, begin), transformed(t, live("a", "11", without, scaledBy("kube-controller-manager"))))
		}, ""},
		{"scaled by a user", func(h cache.ResourceEventHandler) {
			h.OnUpdate(transformed(t, begin), transformed(t, live("a", "11", without, scaledBy("kubectl"))))
		}, "a"},
		{"deleted", func(h cache.ResourceEventHandler) { h.OnDelete(transformed(t, live("a", "11", full))) }, "a gone"},
		{"deleted at an older version", func(h cache.ResourceEventHandler) { h.OnDelete(transformed(t, live("a", "9", full))) }, ""},
		{"missing in a list", func(h cache.ResourceEventHandler) {
			h.OnDelete(cache.DeletedFinalStateUnknown{Key: "apps/a", Obj: transformed(t, live("a", "9", full))})
		}, "a gone"},
		{"not an object", func(h cache.ResourceEventHandler) {
			h.OnAdd("a", false)
			h.OnUpdate("a", "b")
			h.OnDelete("a")
			h.OnDelete(cache.DeletedFinalStateUnknown{Key: "apps/a"})
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newRecordingIndex()
			s := apply.StateOf(deployment, begin)
			l.Put(s)
			l.Expect(web, []apply.State{s})
			test.tell(l.handler())
			if got := l.driftNames(web); got != test.want {
				t.Errorf("got drift %q, want %q", got, test.want)
			}
		})
	}
}

func transformed(t *testing.T, m *metav1.PartialObjectMetadata) cachedObject {
	t.Helper()
	object, err := (HealthConfig{}).transform(m)
	if err != nil {
		t.Fatal(err)
	}
	d, ok := object.(cachedObject)
	if !ok {
		t.Fatalf("got a %T", object)
	}
	return d
}

func TestTransform_ReducesMetadata(t *testing.T) {
	m := live("a", "10", `{"f:spec":{}}`)
	m.OwnerReferences = []metav1.OwnerReference{{Name: "a"}}
	m.Finalizers = []string{"a"}
	d := transformed(t, m)
	want := metav1.ObjectMeta{Namespace: "apps", Name: "a", UID: "a-1", ResourceVersion: "10"}
	if diff := cmp.Diff(metav1.Object(&want), d.GetObjectMeta()); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	if want := apply.StateOf(schema.GroupKind{Group: "apps", Kind: "Deployment"}, m); *d.state != want {
		t.Errorf("the state is %+v, want %+v", d.state, want)
	}
	for _, what := range []any{cache.DeletedFinalStateUnknown{Key: "a"}, "a", nil, d} {
		if got, err := (HealthConfig{}).transform(what); err != nil || fmt.Sprint(got) != fmt.Sprint(what) {
			t.Errorf("transform of %v: %v, %v", what, got, err)
		}
	}
}
