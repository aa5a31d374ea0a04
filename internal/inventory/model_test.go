package inventory

import (
	"slices"
	"strconv"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"pgregory.net/rapid"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
)

// cluster is a simulated API server with a watch that is late, repeats events and breaks. The
// index gets events from the watch and from the process that applies objects.
type cluster struct {
	*Index
	handler cache.ResourceEventHandler
	clock   int
	// objects are the existing objects; the watch does not deliver those without the
	// operator label.
	objects map[string]storedObject
	// events are not delivered by the watch yet; delivered holds the delivered objects.
	events    []change
	delivered map[string]cachedObject
	// response processes the response to the last apply or deletion until it arrives.
	response func()
	// expected holds the results of all applies, including the one without a response.
	expected map[string]apply.State
	// reported is the drift at the last reconciliation.
	reported []Drift
}

type storedObject struct {
	apply.State
	selected bool
}

type change struct {
	name   string
	state  apply.State
	exists bool
}

// write changes or creates an object.
func (c *cluster) write(name string, change func(*storedObject)) apply.State {
	c.clock++
	now, existed := c.objects[name]
	if !existed {
		now = storedObject{State: apply.State{Key: applied(name).Key, UID: types.UID(name + "-" + strconv.Itoa(c.clock))}}
	}
	was := now.selected
	change(&now)
	now.ResourceVersion = strconv.Itoa(c.clock)
	c.objects[name] = now
	c.announce(name, now, was, now.selected)
	return now.State
}

func (c *cluster) remove(name string) {
	c.clock++
	was := c.objects[name]
	delete(c.objects, name)
	was.ResourceVersion = strconv.Itoa(c.clock)
	c.announce(name, was, was.selected, false)
}

// announce adds the event for a watch with a label selector.
func (c *cluster) announce(name string, now storedObject, was, is bool) {
	if was || is {
		c.events = append(c.events, change{name, now.State, is})
	}
}

// deliver delivers one event like an informer.
func (c *cluster) deliver(e change) {
	old, known := c.delivered[e.name]
	now := cachedObject{state: &e.state}
	switch {
	case !e.exists && known:
		delete(c.delivered, e.name)
		c.handler.OnDelete(now)
	case e.exists && known:
		c.delivered[e.name] = now
		c.handler.OnUpdate(old, now)
	case e.exists:
		c.delivered[e.name] = now
		c.handler.OnAdd(now, false)
	}
}

// catchUp delivers all events.
func (c *cluster) catchUp() {
	for _, e := range c.events {
		c.deliver(e)
	}
	c.events = nil
}

// relist delivers the current state like an informer after a broken watch. Objects that were
// created and deleted in between are not delivered.
func (c *cluster) relist() {
	c.events = nil
	for name, old := range c.delivered {
		if !c.objects[name].selected {
			delete(c.delivered, name)
			c.handler.OnDelete(cache.DeletedFinalStateUnknown{Key: name, Obj: old})
		}
	}
	for name, now := range c.objects {
		if now.selected {
			c.deliver(change{name, now.State, true})
		}
	}
}

// receive delivers the response to the last request.
func (c *cluster) receive() {
	if c.response != nil {
		c.response()
		c.response = nil
		// Every action is followed by a reconciliation.
		c.reconcile()
	}
}

func (c *cluster) reconcile() { c.reported = c.Drift(web) }

// expectedDrift returns the difference between the existing and the expected objects.
func (c *cluster) expectedDrift() []Drift {
	var found []Drift
	for name, expected := range c.expected {
		now := c.objects[name]
		switch {
		case !now.selected:
			found = append(found, Drift{Key: expected.Key, Gone: true})
		case now.Ignored, now.Deleting:
		case now.Owner != web || !now.Managed || now.Fingerprint != expected.Fingerprint:
			found = append(found, Drift{Key: expected.Key, Gone: !now.Managed})
		}
	}
	slices.SortFunc(found, func(a, b Drift) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return found
}

// check checks that the index agrees with the existing objects. All events must have been
// delivered.
func (c *cluster) check(t *rapid.T) {
	want := c.expectedDrift()
	if got := c.Drift(web); !slices.Equal(got, want) {
		t.Fatalf("got drift %v, want %v", got, want)
	}
	for _, drift := range want {
		if !slices.Contains(c.reported, drift) {
			t.Fatalf("no drift notification for %v", drift)
		}
	}
	owned := map[apply.Key]bool{}
	for _, s := range c.OwnedBy(web) {
		owned[s.Key] = true
	}
	for name, now := range c.objects {
		if want := now.selected && now.Managed && now.Owner == web; owned[now.Key] != want {
			t.Fatalf("%s is owned: %v, want %v", name, !want, want)
		}
		delete(owned, now.Key)
	}
	if len(owned) > 0 {
		t.Fatalf("owned, but deleted: %v", owned)
	}
	for key, known := range c.Index.objects {
		if known.removed != "" {
			t.Fatalf("%v is still marked as removed", key)
		}
		if known.live == nil && known.expected == nil {
			t.Fatalf("the entry of %v is empty", key)
		}
	}
}

// This process and other clients write in any order, and the watch delivers events late,
// twice or not at all. Once all events are delivered, the index must agree with the API
// server, and every drift must have been notified.
func TestIndex_AgreesWithModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &cluster{
			objects:   map[string]storedObject{},
			delivered: map[string]cachedObject{},
			expected:  map[string]apply.State{},
		}
		c.Index = NewIndex(func(types.UID) { c.reconcile() }, func(types.UID) {})
		c.handler = c.Index.handler()
		c.SetReleaseNamespace(web, "apps")
		c.Expect(web, []apply.State{})
		names := rapid.SampledFrom([]string{"a", "b"})
		foreign := func(change func(*rapid.T, *storedObject)) func(*rapid.T) {
			return func(t *rapid.T) {
				name := names.Draw(t, "name")
				if _, ok := c.objects[name]; !ok {
					t.Skip("no object")
				}
				c.write(name, func(now *storedObject) { change(t, now) })
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"apply": func(t *rapid.T) {
				c.receive()
				name, fields := names.Draw(t, "name"), rapid.Uint64Range(1, 2).Draw(t, "fingerprint")
				s := c.write(name, func(now *storedObject) {
					now.Owner, now.selected, now.Managed, now.Fingerprint = web, true, true, fields
				})
				c.expected[name] = s
				c.response = func() {
					c.Put(s)
					c.ExpectOne(web, s)
				}
			},
			"delete": func(t *rapid.T) {
				c.receive()
				name := names.Draw(t, "name")
				known, ok := c.Get(applied(name).Key)
				if now, there := c.objects[name]; !ok || there && now.UID != known.UID {
					t.Skip("unknown object")
				} else if there {
					c.remove(name)
				}
				c.response = func() { c.Remove(known) }
			},
			"response": func(*rapid.T) { c.receive() },
			"other client changes an applied field": foreign(func(t *rapid.T, now *storedObject) {
				now.Fingerprint = rapid.Uint64Range(1, 3).Draw(t, "fingerprint")
			}),
			"other client changes another field":         foreign(func(*rapid.T, *storedObject) {}),
			"other client removes the owner label":       foreign(func(_ *rapid.T, now *storedObject) { now.Owner = "" }),
			"other client removes the operator label":    foreign(func(_ *rapid.T, now *storedObject) { now.selected = false }),
			"other client restores the labels":           foreign(func(_ *rapid.T, now *storedObject) { now.Owner, now.selected = web, true }),
			"other client removes the managed fields":    foreign(func(_ *rapid.T, now *storedObject) { now.Managed, now.Fingerprint = false, 0 }),
			"other client toggles the ignore annotation": foreign(func(_ *rapid.T, now *storedObject) { now.Ignored = !now.Ignored }),
			"other client deletes an object with a finalizer": foreign(func(_ *rapid.T, now *storedObject) {
				now.Deleting = true
			}),
			"other client deletes": func(t *rapid.T) {
				name := names.Draw(t, "name")
				if _, ok := c.objects[name]; !ok {
					t.Skip("no object")
				}
				c.remove(name)
			},
			"other client creates": func(t *rapid.T) {
				name := names.Draw(t, "name")
				if _, ok := c.objects[name]; ok {
					t.Skip("object exists")
				}
				c.write(name, func(now *storedObject) {
					now.selected = rapid.Bool().Draw(t, "with copied labels")
					if now.selected {
						now.Owner = web
					}
				})
			},
			"watch delivers an event": func(t *rapid.T) {
				if len(c.events) == 0 {
					t.Skip("no event")
				}
				e := c.events[0]
				c.events = c.events[1:]
				c.deliver(e)
			},
			"watch repeats an event": func(t *rapid.T) {
				name := names.Draw(t, "name")
				if c.delivered[name].state == nil {
					t.Skip("no delivered event")
				}
				c.deliver(change{name, *c.delivered[name].state, true})
			},
			"watch breaks": func(t *rapid.T) {
				for name, applied := range c.expected {
					observed := c.delivered[name]
					if !c.objects[name].selected && (observed.state == nil || api.IsNewer(applied.ResourceVersion, observed.state.ResourceVersion)) {
						t.Skip("a list does not show objects that were applied and removed in between")
					}
				}
				c.relist()
			},
			"all events delivered": func(t *rapid.T) {
				if rapid.Bool().Draw(t, "response first") {
					c.receive()
				}
				c.catchUp()
				c.receive()
				c.check(t)
			},
		})
		c.catchUp()
		c.receive()
		c.check(t)
	})
}

// For the race detector.
func TestIndex_ConcurrentUse(*testing.T) {
	x := NewIndex(func(types.UID) {}, func(types.UID) {})
	x.SetReleaseNamespace(web, "apps")
	var wait sync.WaitGroup
	for worker := range 4 {
		wait.Go(func() {
			for i := range 200 {
				s := but(applied(strconv.Itoa(i%3)), 10+i*4+worker, func(s *apply.State) { s.Fingerprint = uint64(i % 2) })
				switch (i + worker) % 5 {
				case 0:
					x.Put(s)
					x.ExpectOne(web, s)
				case 1:
					x.observe(&s, nil)
				case 2:
					x.observeDeletion(new(s), false)
				case 3:
					x.Remove(s)
				default:
					x.Expect(web, []apply.State{s})
				}
				x.Get(s.Key)
				x.Intact(web, s.Key)
				x.Drift(web)
				x.OwnedBy(web)
				x.RestoreExpected(web, Recorded{Digest: "1-0"})
			}
		})
	}
	wait.Wait()
}
