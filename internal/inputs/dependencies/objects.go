package dependencies

import (
	"cmp"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/inputs"
	"github.com/chartwright/chartwright/internal/inventory/health"
)

// Feed passes the objects of one kind to a Store. Informers for several namespaces share a
// Feed.
type Feed struct {
	store *Store
	kind  schema.GroupKind
	// serves: this operator reconciles the objects.
	serves bool
	// objects are by namespace and name.
	objects map[string]map[string]*object
	// uids finds the objects of served kinds.
	uids   map[types.UID]types.NamespacedName
	synced bool
	// failed is why the watch fails, empty if it works.
	failed string
	// suspended: the reconciler of a served kind is ending.
	suspended bool
	// ended: another feed has replaced this one.
	ended bool
}

// object is an object with its health by each rule that was evaluated.
type object struct {
	metav1.Object
	health map[*health.Rule]result
}

// isAtLeast reports whether the object has a resourceVersion or a newer one.
func (o *object) isAtLeast(resourceVersion string) bool {
	return o.GetResourceVersion() == resourceVersion || api.IsNewer(o.GetResourceVersion(), resourceVersion)
}

func (s *Store) newFeed(kind schema.GroupKind, serves bool) *Feed {
	return &Feed{
		store: s, kind: kind, serves: serves,
		objects: map[string]map[string]*object{}, uids: map[types.UID]types.NamespacedName{},
	}
}

// get returns an object, or nil. The namespace of a cluster-scoped object does not matter.
func (f *Feed) get(name types.NamespacedName) *object {
	return cmp.Or(f.objects[name.Namespace][name.Name], f.objects[""][name.Name])
}

// put adds, replaces or removes an object. It returns the previous one.
func (f *Feed) put(name types.NamespacedName, o *object) (before *object) {
	before = f.get(name)
	if before != nil {
		delete(f.uids, before.GetUID())
	}
	if o == nil {
		delete(f.objects[name.Namespace], name.Name)
		if len(f.objects[name.Namespace]) == 0 {
			delete(f.objects, name.Namespace)
		}
		return before
	}
	if f.objects[name.Namespace] == nil {
		f.objects[name.Namespace] = map[string]*object{}
	}
	f.objects[name.Namespace][name.Name] = o
	if f.serves {
		f.uids[o.GetUID()] = name
	}
	return before
}

// feedOf returns the objects of a kind, nil if no watch has started. The objects of a served
// kind are the same in each version.
func (s *Store) feedOf(kind schema.GroupVersionKind) *Feed {
	if serves := s.served[kind.GroupKind()]; serves != nil {
		return serves.feed
	}
	return s.feeds[kind]
}

// Feed returns the feed of a kind, and creates a missing feed. Serve replaces the feed
// of a served kind by an empty one, and the previous one is then without effect.
func (s *Store) Feed(kind schema.GroupVersionKind) *Feed {
	s.users.Mu.Lock()
	defer s.users.Mu.Unlock()
	if f := s.feedOf(kind); f != nil {
		return f
	}
	s.feeds[kind] = s.newFeed(kind.GroupKind(), false)
	return s.feeds[kind]
}

// Handler returns the event handler of an informer. The objects may be packed, see package
// customresource, or only have metadata.
func (f *Feed) Handler() cache.ResourceEventHandler {
	return inputs.EventHandler(f.store.users,
		func(o metav1.Object) []types.UID { return f.store.observe(f, o, &object{Object: o}) },
		func(o metav1.Object) []types.UID { return f.store.observe(f, o, nil) },
	)
}

// observe replaces an object, or removes it if the new one is nil.
func (s *Store) observe(f *Feed, o metav1.Object, after *object) []types.UID {
	name := types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
	before := f.get(name)
	if f.ended || before == nil && after == nil || before != nil && after != nil && before.GetResourceVersion() == after.GetResourceVersion() {
		return nil
	}
	f.put(name, after)
	if after == nil {
		s.budget.Release(inputs.Item{Of: f, NamespacedName: name}, o.GetUID())
	}
	key := Key{f.kind, name}
	if before != nil && f.serves && (after == nil || after.GetUID() != before.GetUID()) {
		delete(s.holds, before.GetUID())
		delete(s.blocked, key)
		s.reconciled(s.served[f.kind], before.GetUID())
	}
	return s.notify(s.changedObject(f, key, before, after))
}

// changedObject returns the users to check after an object of a feed has changed.
func (s *Store) changedObject(f *Feed, key Key, before, after *object) []types.UID {
	var concerned, relinked []*target
	for _, t := range s.candidates(key) {
		was, is := t.matches(key.Name, before), t.matches(key.Name, after)
		if s.feedOf(t.ref.Kind) != f || !was && !is {
			continue
		}
		t.outdate(was != is)
		concerned = append(concerned, t)
		if was != is {
			s.doubtful.Insert(key)
			relinked = append(relinked, t)
		}
	}
	return append(s.usersOf(concerned), s.updateCycles(s.usersOf(relinked)...)...)
}

// Synced records that the informers have listed all existing objects, or work again.
func (f *Feed) Synced() {
	s := f.store
	s.users.Update(func() []types.UID {
		if f.synced && f.failed == "" || f.ended {
			return nil
		}
		f.synced, f.failed = true, ""
		if f.serves {
			s.served[f.kind].dropDeleted()
		}
		s.doubtAll()
		return s.notify(s.usersOf(s.ofKind(f.kind)))
	})
}

// Failed records why an informer fails, and reports whether the reason is new. Until Synced, no
// object of the kind is ready, because the known state may be old.
func (f *Feed) Failed(reason string) (isNew bool) {
	s := f.store
	s.users.Update(func() []types.UID {
		if f.ended || f.failed == reason {
			return nil
		}
		isNew, f.failed = true, reason
		return s.notify(s.usersOf(s.ofKind(f.kind)))
	})
	return isNew
}

// End removes all objects, because the informers have ended. The feed is then without effect.
func (f *Feed) End() {
	s := f.store
	s.users.Update(func() []types.UID {
		if f.ended {
			return nil
		}
		f.ended = true
		s.budget.ReleaseAll(f)
		maps.DeleteFunc(s.feeds, func(_ schema.GroupVersionKind, other *Feed) bool { return other == f })
		return s.notify(s.changedKind(f.kind))
	})
}
