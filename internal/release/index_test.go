package release_test

import (
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"pgregory.net/rapid"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/release"
)

// stored returns the live metadata of a record of the release "web".
func stored(revision int, uid, resourceVersion, status string) *metav1.PartialObjectMetadata {
	return secret(func(m *metav1.PartialObjectMetadata) {
		m.Name = "sh.helm.release.v1.web.v" + strconv.Itoa(revision)
		m.UID = types.UID(uid)
		m.ResourceVersion = resourceVersion
		m.Labels["version"] = strconv.Itoa(revision)
		m.Labels[api.LabelRevision] = strconv.Itoa(revision)
		m.Labels["status"] = status
	})
}

func record(t interface{ Fatal(...any) }, m *metav1.PartialObjectMetadata) release.Record {
	r, ok := release.FromMeta(m)
	if !ok {
		t.Fatal("no record: ", m.Name)
	}
	return r
}

// watched is an index with the changes that it reported.
type watched struct {
	*release.Index
	cache.ResourceEventHandler
	changes []string
}

func newWatched() *watched {
	w := &watched{}
	w.Index = release.NewIndex(func(r release.Record) {
		w.changes = append(w.changes, fmt.Sprintf("v%d %s", r.Revision, r.Status))
	})
	w.ResourceEventHandler = w.Handler()
	return w
}

func (w *watched) history() []string {
	got := []string{}
	for _, r := range w.History("apps", "web") {
		got = append(got, fmt.Sprintf("v%d %s", r.Revision, r.Status))
	}
	return got
}

func (w *watched) expect(t *testing.T, when string, history, changes []string) {
	t.Helper()
	if diff := cmp.Diff(history, w.history()); diff != "" {
		t.Errorf("%s: the history (-want +got):\n%s", when, diff)
	}
	if diff := cmp.Diff(changes, w.changes); diff != "" {
		t.Errorf("%s: the reported changes (-want +got):\n%s", when, diff)
	}
}

func TestIndex_SortsHistory(t *testing.T) {
	w := newWatched()
	for _, revision := range []int{2, 10, 1, 9} {
		w.OnAdd(stored(revision, "uid"+strconv.Itoa(revision), strconv.Itoa(revision), "superseded"), true)
	}
	if diff := cmp.Diff([]string{"v10 superseded", "v9 superseded", "v2 superseded", "v1 superseded"}, w.history()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := w.History("apps", "other"); len(got) != 0 {
		t.Errorf("the history of another release: %v", got)
	}
	if got := w.History("other", "web"); len(got) != 0 {
		t.Errorf("the history in another namespace: %v", got)
	}
}

func TestIndex_PrefersOwnWritesToOldEvents(t *testing.T) {
	w := newWatched()
	pending, deployed := stored(1, "a", "9", "pending-install"), stored(1, "a", "10", "deployed")
	w.Put(record(t, pending))
	w.Put(record(t, deployed))
	w.OnAdd(pending, false)
	w.expect(t, "the watch reports an old state", []string{"v1 deployed"}, nil)
	w.OnUpdate(pending, deployed)
	w.expect(t, "the watch has caught up", []string{"v1 deployed"}, nil)
	w.OnUpdate(deployed, stored(1, "a", "11", "superseded"))
	w.expect(t, "another process changed it", []string{"v1 superseded"}, []string{"v1 superseded"})
	w.Put(record(t, deployed))
	w.expect(t, "another process changed it after this one", []string{"v1 superseded"}, []string{"v1 superseded"})
}

func TestIndex_IgnoresOldEventsOfRemovedRecord(t *testing.T) {
	w := newWatched()
	one := stored(1, "a", "1", "failed")
	w.Put(record(t, one))
	w.Remove(record(t, one))
	w.expect(t, "removed", []string{}, nil)
	w.OnAdd(one, false)
	w.expect(t, "the watch still reports it", []string{}, nil)
	w.OnUpdate(one, stored(1, "a", "2", "failed"))
	w.expect(t, "the watch reports a change", []string{}, nil)
	w.OnDelete(one)
	w.expect(t, "the watch has caught up", []string{}, nil)
}

func TestIndex_AcceptsSuccessorOfDeletedRecord(t *testing.T) {
	w := newWatched()
	first, second, third := stored(1, "a", "1", "failed"), stored(1, "b", "3", "failed"), stored(1, "c", "5", "deployed")
	w.Put(record(t, first))
	w.Remove(record(t, first))
	w.Put(record(t, second))
	w.Remove(record(t, second))
	w.Put(record(t, third))
	for i, act := range []func(){
		func() { w.OnAdd(first, false) },
		func() { w.OnDelete(first) },
		func() { w.OnAdd(second, false) },
		func() { w.OnDelete(cache.DeletedFinalStateUnknown{Key: "apps/" + second.Name, Obj: second}) },
		func() { w.OnAdd(third, false) },
	} {
		act()
		w.expect(t, "event "+strconv.Itoa(i), []string{"v1 deployed"}, nil)
	}
	w.OnDelete(third)
	w.expect(t, "another process deleted it", []string{}, []string{"v1 deployed"})
}

func TestIndex_ReportsChangesByOthers(t *testing.T) {
	w := newWatched()
	one := stored(1, "a", "1", "deployed")
	w.OnAdd(one, true)
	w.OnUpdate(one, one)
	w.expect(t, "added and reported again", []string{"v1 deployed"}, []string{"v1 deployed"})
	again := stored(1, "b", "3", "pending-install")
	w.OnUpdate(one, again)
	w.expect(t, "deleted and created again between two events", []string{"v1 pending-install"}, []string{"v1 deployed", "v1 pending-install"})
	w.OnDelete(one)
	w.expect(t, "a late event of the first", []string{"v1 pending-install"}, []string{"v1 deployed", "v1 pending-install"})
	w.OnDelete("no object")
	w.OnAdd(&metav1.PartialObjectMetadata{}, false)
	w.expect(t, "a Secret that is not a record", []string{"v1 pending-install"}, []string{"v1 deployed", "v1 pending-install"})
}

func TestIndex_Concurrent(t *testing.T) {
	index := release.NewIndex(func(release.Record) {})
	handler := index.Handler()
	var wait sync.WaitGroup
	for worker := range 4 {
		wait.Go(func() {
			for i := range 200 {
				m := stored(i%5+1, fmt.Sprintf("%d-%d", worker, i), strconv.Itoa(worker*1000+i+1), "deployed")
				handler.OnAdd(m, false)
				r := record(t, m)
				index.Put(r)
				for _, r := range index.History("apps", "web") {
					_ = r.Genuine()
				}
				_ = index.OwnedBy("cr-uid")
				index.Remove(r)
				handler.OnDelete(m)
			}
		})
	}
	wait.Wait()
	if left := index.History("apps", "web"); len(left) != 0 {
		t.Errorf("%d records are left", len(left))
	}
}

// cluster simulates an API server with a delayed watch, and an index that receives the
// events and the writes of this process.
type cluster struct {
	*watched
	clock, uids int
	objects     map[string]*metav1.PartialObjectMetadata
	// events holds the pending events, and delivered the delivered ones.
	events    []event
	delivered map[string]*metav1.PartialObjectMetadata
	// ownWrites holds the names that this process wrote last.
	ownWrites map[string]bool
	others    bool
}

type event struct {
	name string
	// object is nil for a deletion.
	object *metav1.PartialObjectMetadata
}

func (c *cluster) store(t *rapid.T, revision int) *metav1.PartialObjectMetadata {
	c.clock++
	m := stored(revision, "", strconv.Itoa(c.clock), rapid.SampledFrom([]string{"deployed", "failed", "pending-upgrade"}).Draw(t, "status"))
	m.Labels[api.LabelOwnerUID] = rapid.SampledFrom([]string{"x", "y"}).Draw(t, "owner")
	if old := c.objects[m.Name]; old != nil {
		m.UID = old.UID
	} else {
		c.uids++
		m.UID = types.UID(strconv.Itoa(c.uids))
	}
	c.objects[m.Name] = m
	c.events = append(c.events, event{m.Name, m})
	return m
}

func (c *cluster) remove(name string) {
	c.clock++
	delete(c.objects, name)
	c.events = append(c.events, event{name, nil})
}

// deliver delivers one event like an informer.
func (c *cluster) deliver(e event) {
	old := c.delivered[e.name]
	switch {
	case e.object == nil && old != nil:
		delete(c.delivered, e.name)
		c.OnDelete(old)
	case e.object != nil && old != nil:
		c.delivered[e.name] = e.object
		c.OnUpdate(old, e.object)
	case e.object != nil:
		c.delivered[e.name] = e.object
		c.OnAdd(e.object, false)
	}
}

// relist delivers the current state, like an informer after a broken watch, which
// misses intermediate states.
func (c *cluster) relist() {
	c.events = nil
	for name, old := range c.delivered {
		if c.objects[name] == nil {
			delete(c.delivered, name)
			c.OnDelete(cache.DeletedFinalStateUnknown{Key: "apps/" + name, Obj: old})
		}
	}
	for name, object := range c.objects {
		c.deliver(event{name, object})
	}
	for name := range c.ownWrites {
		// This process wrote the record, another deleted it, and the watch missed both.
		// The next read of the record detects that.
		if known := c.known(name); known != nil && c.objects[name] == nil {
			c.Remove(*known)
		}
	}
}

// known returns the record with a name in the index.
func (c *cluster) known(name string) *release.Record {
	for _, r := range c.History("apps", "web") {
		if r.Secret == name {
			return &r
		}
	}
	return nil
}

func (c *cluster) agrees(t *rapid.T, name, why string) {
	t.Helper()
	known, object := c.known(name), c.objects[name]
	switch {
	case known == nil && object == nil:
	case known == nil:
		t.Fatalf("%s: the index does not hold %s", why, name)
	case object == nil:
		t.Fatalf("%s: the index holds %s, which was deleted", why, name)
	case known.UID != object.UID || known.ResourceVersion != object.ResourceVersion || known.Status != object.Labels["status"]:
		t.Fatalf("%s: the index holds %s as %s at %s, it is %s at %s", why, name, known.UID, known.ResourceVersion, object.UID, object.ResourceVersion)
	}
}

// TestIndex_Model runs writes of this and other processes and delayed or broken watches
// in any order.
func TestIndex_Model(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &cluster{
			watched:   newWatched(),
			objects:   map[string]*metav1.PartialObjectMetadata{},
			delivered: map[string]*metav1.PartialObjectMetadata{},
			ownWrites: map[string]bool{},
		}
		revision := rapid.IntRange(1, 3)
		t.Repeat(map[string]func(*rapid.T){
			"we write": func(t *rapid.T) {
				m := c.store(t, revision.Draw(t, "revision"))
				c.Put(record(t, m))
				c.ownWrites[m.Name] = true
			},
			"we remove": func(t *rapid.T) {
				name := "sh.helm.release.v1.web.v" + strconv.Itoa(revision.Draw(t, "revision"))
				known := c.known(name)
				if known == nil || c.objects[name] == nil || known.UID != c.objects[name].UID {
					t.Skip("unknown record")
				}
				c.remove(name)
				c.Remove(*known)
				c.ownWrites[name] = true
			},
			"others write": func(t *rapid.T) {
				m := c.store(t, revision.Draw(t, "revision"))
				c.ownWrites[m.Name], c.others = false, true
			},
			"others remove": func(t *rapid.T) {
				name := "sh.helm.release.v1.web.v" + strconv.Itoa(revision.Draw(t, "revision"))
				if c.objects[name] == nil {
					t.Skip("nothing there")
				}
				c.remove(name)
				c.ownWrites[name], c.others = false, true
			},
			"the watch reports an event": func(t *rapid.T) {
				if len(c.events) == 0 {
					t.Skip("nothing new")
				}
				e := c.events[0]
				c.events = c.events[1:]
				c.deliver(e)
			},
			"the watch catches up": func(*rapid.T) {
				for _, e := range c.events {
					c.deliver(e)
				}
				c.events = nil
			},
			"the watch breaks": func(*rapid.T) { c.relist() },
			"": func(t *rapid.T) {
				for name, own := range c.ownWrites {
					if own || len(c.events) == 0 {
						c.agrees(t, name, fmt.Sprintf("written by this process: %v, %d pending events", own, len(c.events)))
					}
				}
				if !c.others && len(c.changes) > 0 {
					t.Fatalf("changes of this process were reported: %v", c.changes)
				}
				byOwner := append(c.OwnedBy("x"), c.OwnedBy("y")...)
				if all := c.History("apps", "web"); len(byOwner) != len(all) {
					t.Fatalf("%d records by owner, %d by release", len(byOwner), len(all))
				}
				for i, r := range c.History("apps", "web") {
					if i > 0 && r.Revision >= c.History("apps", "web")[i-1].Revision {
						t.Fatal("the history is not newest first")
					}
				}
			},
		})
	})
}
