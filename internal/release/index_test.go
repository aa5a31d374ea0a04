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

// stored returns the metadata of a record of the release web, as the API
// server holds it.
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

// watched is an index with the changes that it told of.
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
		t.Errorf("%s: the changes told (-want +got):\n%s", when, diff)
	}
}

func TestIndexOrdersHistory(t *testing.T) {
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

func TestIndexPrefersOwnWritesToALaggingWatch(t *testing.T) {
	w := newWatched()
	pending, deployed := stored(1, "a", "9", "pending-install"), stored(1, "a", "10", "deployed")
	w.Put(record(t, pending))
	w.Put(record(t, deployed))
	w.OnAdd(pending, false)
	w.expect(t, "the watch tells what was", []string{"v1 deployed"}, nil)
	w.OnUpdate(pending, deployed)
	w.expect(t, "the watch has caught up", []string{"v1 deployed"}, nil)
	w.OnUpdate(deployed, stored(1, "a", "11", "superseded"))
	w.expect(t, "somebody changed it", []string{"v1 superseded"}, []string{"v1 superseded"})
	w.Put(record(t, deployed))
	w.expect(t, "our write was overtaken by somebody's", []string{"v1 superseded"}, []string{"v1 superseded"})
}

func TestIndexForgetsWhatWasRemoved(t *testing.T) {
	w := newWatched()
	one := stored(1, "a", "1", "failed")
	w.Put(record(t, one))
	w.Remove(record(t, one))
	w.expect(t, "removed", []string{}, nil)
	w.OnAdd(one, false)
	w.expect(t, "the watch still holds it", []string{}, nil)
	w.OnUpdate(one, stored(1, "a", "2", "failed"))
	w.expect(t, "and tells of a change", []string{}, nil)
	w.OnDelete(one)
	w.expect(t, "the watch has caught up", []string{}, nil)
}

func TestIndexTellsTheSuccessorOfADeletedRecord(t *testing.T) {
	w := newWatched()
	first, second, third := stored(1, "a", "1", "failed"), stored(1, "b", "3", "failed"), stored(1, "c", "5", "deployed")
	w.Put(record(t, first))
	w.Remove(record(t, first))
	w.Put(record(t, second))
	w.Remove(record(t, second))
	w.Put(record(t, third))
	for i, tell := range []func(){
		func() { w.OnAdd(first, false) },
		func() { w.OnDelete(first) },
		func() { w.OnAdd(second, false) },
		func() { w.OnDelete(cache.DeletedFinalStateUnknown{Key: "apps/" + second.Name, Obj: second}) },
		func() { w.OnAdd(third, false) },
	} {
		tell()
		w.expect(t, "event "+strconv.Itoa(i), []string{"v1 deployed"}, nil)
	}
	w.OnDelete(third)
	w.expect(t, "somebody deleted it", []string{}, []string{"v1 deployed"})
}

func TestIndexSeesWhatOthersDo(t *testing.T) {
	w := newWatched()
	one := stored(1, "a", "1", "deployed")
	w.OnAdd(one, true)
	w.OnUpdate(one, one)
	w.expect(t, "added, and told again", []string{"v1 deployed"}, []string{"v1 deployed"})
	again := stored(1, "b", "3", "pending-install")
	w.OnUpdate(one, again)
	w.expect(t, "deleted and made again between two looks", []string{"v1 pending-install"}, []string{"v1 deployed", "v1 pending-install"})
	w.OnDelete(one)
	w.expect(t, "a late word of the first", []string{"v1 pending-install"}, []string{"v1 deployed", "v1 pending-install"})
	w.OnDelete("no object")
	w.OnAdd(&metav1.PartialObjectMetadata{}, false)
	w.expect(t, "what is no record", []string{"v1 pending-install"}, []string{"v1 deployed", "v1 pending-install"})
}

func TestIndexConcurrently(t *testing.T) {
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

// cluster is an API server with a watch that lags, and an index that hears of
// it from the watch and from the process that writes.
type cluster struct {
	*watched
	clock, uids int
	objects     map[string]*metav1.PartialObjectMetadata
	// events are what the watch has not told yet; told is what it has.
	events []event
	told   map[string]*metav1.PartialObjectMetadata
	// mine holds the names that this process was the last to write.
	mine   map[string]bool
	others bool
}

type event struct {
	name string
	// object is nil where it was deleted.
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

// tell delivers one event as an informer does.
func (c *cluster) tell(e event) {
	old := c.told[e.name]
	switch {
	case e.object == nil && old != nil:
		delete(c.told, e.name)
		c.OnDelete(old)
	case e.object != nil && old != nil:
		c.told[e.name] = e.object
		c.OnUpdate(old, e.object)
	case e.object != nil:
		c.told[e.name] = e.object
		c.OnAdd(e.object, false)
	}
}

// relist delivers the state at once, as an informer does whose watch broke:
// what came and went meanwhile it never sees.
func (c *cluster) relist() {
	c.events = nil
	for name, old := range c.told {
		if c.objects[name] == nil {
			delete(c.told, name)
			c.OnDelete(cache.DeletedFinalStateUnknown{Key: "apps/" + name, Obj: old})
		}
	}
	for name, object := range c.objects {
		c.tell(event{name, object})
	}
	for name := range c.mine {
		// We wrote it, others removed it, and the watch saw neither: whoever
		// reads it next finds out.
		if known := c.known(name); known != nil && c.objects[name] == nil {
			c.Remove(*known)
		}
	}
}

// known returns what the index holds under a name.
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
		t.Fatalf("%s: the index lacks %s", why, name)
	case object == nil:
		t.Fatalf("%s: the index holds %s, which is gone", why, name)
	case known.UID != object.UID || known.ResourceVersion != object.ResourceVersion || known.Status != object.Labels["status"]:
		t.Fatalf("%s: the index holds %s as %s at %s, it is %s at %s", why, name, known.UID, known.ResourceVersion, object.UID, object.ResourceVersion)
	}
}

// TestIndexModel lets this process and others write, and the watch lag and
// break, in any order.
func TestIndexModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &cluster{
			watched: newWatched(),
			objects: map[string]*metav1.PartialObjectMetadata{},
			told:    map[string]*metav1.PartialObjectMetadata{},
			mine:    map[string]bool{},
		}
		revision := rapid.IntRange(1, 3)
		t.Repeat(map[string]func(*rapid.T){
			"we write": func(t *rapid.T) {
				m := c.store(t, revision.Draw(t, "revision"))
				c.Put(record(t, m))
				c.mine[m.Name] = true
			},
			"we remove": func(t *rapid.T) {
				name := "sh.helm.release.v1.web.v" + strconv.Itoa(revision.Draw(t, "revision"))
				known := c.known(name)
				if known == nil || c.objects[name] == nil || known.UID != c.objects[name].UID {
					t.Skip("nothing that we know of")
				}
				c.remove(name)
				c.Remove(*known)
				c.mine[name] = true
			},
			"others write": func(t *rapid.T) {
				m := c.store(t, revision.Draw(t, "revision"))
				c.mine[m.Name], c.others = false, true
			},
			"others remove": func(t *rapid.T) {
				name := "sh.helm.release.v1.web.v" + strconv.Itoa(revision.Draw(t, "revision"))
				if c.objects[name] == nil {
					t.Skip("nothing there")
				}
				c.remove(name)
				c.mine[name], c.others = false, true
			},
			"the watch tells": func(t *rapid.T) {
				if len(c.events) == 0 {
					t.Skip("nothing new")
				}
				e := c.events[0]
				c.events = c.events[1:]
				c.tell(e)
			},
			"the watch catches up": func(*rapid.T) {
				for _, e := range c.events {
					c.tell(e)
				}
				c.events = nil
			},
			"the watch breaks": func(*rapid.T) { c.relist() },
			"": func(t *rapid.T) {
				for name, mine := range c.mine {
					if mine || len(c.events) == 0 {
						c.agrees(t, name, fmt.Sprintf("written by us: %v, %d events to come", mine, len(c.events)))
					}
				}
				if !c.others && len(c.changes) > 0 {
					t.Fatalf("told of changes of our own: %v", c.changes)
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
