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

// cluster is an API server whose watch lags, repeats itself and breaks, and an
// index that hears of it from the watch and from the process that applies.
type cluster struct {
	*Index
	handler cache.ResourceEventHandler
	clock   int
	// objects are what there is; those without the operator label are not in
	// the watch.
	objects map[string]thing
	// events are what the watch has not told yet; told is what it has.
	events []change
	told   map[string]cachedObject
	// answer is what the API server made of our last apply, or deletion, until
	// we hear of it.
	answer func()
	// expected is what we were told that we applied, or wait to be told.
	expected map[string]apply.State
	// noticed is what was damaged when somebody last had reason to look.
	noticed []Drift
}

type thing struct {
	apply.State
	selected bool
}

type change struct {
	name   string
	state  apply.State
	exists bool
}

// write changes an object, or makes it.
func (c *cluster) write(name string, change func(*thing)) apply.State {
	c.clock++
	now, existed := c.objects[name]
	if !existed {
		now = thing{State: apply.State{Key: applied(name).Key, UID: types.UID(name + "-" + strconv.Itoa(c.clock))}}
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

// announce is what the API server tells a watch that is selected by a label.
func (c *cluster) announce(name string, now thing, was, is bool) {
	if was || is {
		c.events = append(c.events, change{name, now.State, is})
	}
}

// tell delivers one event as an informer does.
func (c *cluster) tell(e change) {
	old, known := c.told[e.name]
	now := cachedObject{state: &e.state}
	switch {
	case !e.exists && known:
		delete(c.told, e.name)
		c.handler.OnDelete(now)
	case e.exists && known:
		c.told[e.name] = now
		c.handler.OnUpdate(old, now)
	case e.exists:
		c.told[e.name] = now
		c.handler.OnAdd(now, false)
	}
}

// catchUp delivers all events.
func (c *cluster) catchUp() {
	for _, e := range c.events {
		c.tell(e)
	}
	c.events = nil
}

// relist delivers the state at once, as an informer does whose watch broke:
// what came and went meanwhile it never sees.
func (c *cluster) relist() {
	c.events = nil
	for name, old := range c.told {
		if !c.objects[name].selected {
			delete(c.told, name)
			c.handler.OnDelete(cache.DeletedFinalStateUnknown{Key: name, Obj: old})
		}
	}
	for name, now := range c.objects {
		if now.selected {
			c.tell(change{name, now.State, true})
		}
	}
}

// hear delivers the answer to our last request.
func (c *cluster) hear() {
	if c.answer != nil {
		c.answer()
		c.answer = nil
		// A pass follows every action.
		c.look()
	}
}

func (c *cluster) look() { c.noticed = c.Drift(web) }

// damaged is the naive difference between what there is and what is expected.
func (c *cluster) damaged() []Drift {
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

// agree fails where the index, to which everything was told, differs from what
// there is.
func (c *cluster) agree(t *rapid.T) {
	want := c.damaged()
	if got := c.Drift(web); !slices.Equal(got, want) {
		t.Fatalf("damaged: %v, want %v", got, want)
	}
	for _, drift := range want {
		if !slices.Contains(c.noticed, drift) {
			t.Fatalf("nobody was told of %v", drift)
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
		t.Fatalf("owned, and not there: %v", owned)
	}
	for key, known := range c.Index.objects {
		if known.removed != "" {
			t.Fatalf("waiting for the end of %v", key)
		}
		if known.live == nil && known.expected == nil {
			t.Fatalf("nothing is known of %v, and it is held", key)
		}
	}
}

// TestIndexModel lets this process and others write, in any order, and the
// watch tell of it late, twice or in part. When all was told, the index must
// know what there is, and whoever repairs must know what is damaged.
func TestIndexModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &cluster{
			objects:  map[string]thing{},
			told:     map[string]cachedObject{},
			expected: map[string]apply.State{},
		}
		c.Index = NewIndex(func(types.UID) { c.look() }, func(types.UID) {})
		c.handler = c.Index.handler()
		c.SetReleaseNamespace(web, "apps")
		c.Expect(web, []apply.State{})
		names := rapid.SampledFrom([]string{"a", "b"})
		foreign := func(change func(*rapid.T, *thing)) func(*rapid.T) {
			return func(t *rapid.T) {
				name := names.Draw(t, "name")
				if _, ok := c.objects[name]; !ok {
					t.Skip("nothing there")
				}
				c.write(name, func(now *thing) { change(t, now) })
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"we apply": func(t *rapid.T) {
				c.hear()
				name, fields := names.Draw(t, "name"), rapid.Uint64Range(1, 2).Draw(t, "fingerprint")
				s := c.write(name, func(now *thing) {
					now.Owner, now.selected, now.Managed, now.Fingerprint = web, true, true, fields
				})
				c.expected[name] = s
				c.answer = func() {
					c.Put(s)
					c.ExpectOne(web, s)
				}
			},
			"we delete": func(t *rapid.T) {
				c.hear()
				name := names.Draw(t, "name")
				known, ok := c.Get(applied(name).Key)
				if now, there := c.objects[name]; !ok || there && now.UID != known.UID {
					t.Skip("nothing that we know of")
				} else if there {
					c.remove(name)
				}
				c.answer = func() { c.Remove(known) }
			},
			"we hear the answer": func(*rapid.T) { c.hear() },
			"somebody changes a field of ours": foreign(func(t *rapid.T, now *thing) {
				now.Fingerprint = rapid.Uint64Range(1, 3).Draw(t, "fingerprint")
			}),
			"somebody changes what is not ours":   foreign(func(*rapid.T, *thing) {}),
			"somebody takes the owner label":      foreign(func(_ *rapid.T, now *thing) { now.Owner = "" }),
			"somebody takes the operator label":   foreign(func(_ *rapid.T, now *thing) { now.selected = false }),
			"somebody puts the labels back":       foreign(func(_ *rapid.T, now *thing) { now.Owner, now.selected = web, true }),
			"somebody wipes the managed fields":   foreign(func(_ *rapid.T, now *thing) { now.Managed, now.Fingerprint = false, 0 }),
			"somebody asks to ignore, or no more": foreign(func(_ *rapid.T, now *thing) { now.Ignored = !now.Ignored }),
			"somebody deletes what has a finalizer": foreign(func(_ *rapid.T, now *thing) {
				now.Deleting = true
			}),
			"somebody deletes": func(t *rapid.T) {
				name := names.Draw(t, "name")
				if _, ok := c.objects[name]; !ok {
					t.Skip("nothing there")
				}
				c.remove(name)
			},
			"somebody creates": func(t *rapid.T) {
				name := names.Draw(t, "name")
				if _, ok := c.objects[name]; ok {
					t.Skip("it is there")
				}
				c.write(name, func(now *thing) {
					now.selected = rapid.Bool().Draw(t, "with copied labels")
					if now.selected {
						now.Owner = web
					}
				})
			},
			"the watch tells": func(t *rapid.T) {
				if len(c.events) == 0 {
					t.Skip("nothing new")
				}
				e := c.events[0]
				c.events = c.events[1:]
				c.tell(e)
			},
			"the watch repeats itself": func(t *rapid.T) {
				name := names.Draw(t, "name")
				if c.told[name].state == nil {
					t.Skip("nothing to repeat")
				}
				c.tell(change{name, *c.told[name].state, true})
			},
			"the watch breaks": func(t *rapid.T) {
				for name, ours := range c.expected {
					seen := c.told[name]
					if !c.objects[name].selected && (seen.state == nil || api.IsNewer(ours.ResourceVersion, seen.state.ResourceVersion)) {
						t.Skip("what we applied and somebody removed in the same gap, no list tells")
					}
				}
				c.relist()
			},
			"all is told": func(t *rapid.T) {
				if rapid.Bool().Draw(t, "the answer first") {
					c.hear()
				}
				c.catchUp()
				c.hear()
				c.agree(t)
			},
		})
		c.catchUp()
		c.hear()
		c.agree(t)
	})
}

// TestIndexTogether calls everything at once, for the race detector.
func TestIndexTogether(*testing.T) {
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
