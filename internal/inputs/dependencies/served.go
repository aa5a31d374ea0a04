package dependencies

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/chartwright/chartwright/internal/inventory/health"
)

// service is a kind that this operator serves.
type service struct {
	// on are the kinds that custom resources of the kind may depend on.
	on    []schema.GroupKind
	rules health.Rules
	feed  *Feed
	since time.Time
	// expected: Expect was called. pending are the expected custom resources that were
	// neither Set nor forgotten.
	expected bool
	pending  sets.Set[types.UID]
}

// expectTimeout is how long after Serve the store waits for Expect.
const expectTimeout = 2 * time.Minute

// hold is the hold of a custom resource, or its end.
type hold struct {
	// why is empty if the hold ends, when the store has the resourceVersion or a newer one.
	why, resourceVersion string
}

// Messages of custom resources that are held.
const (
	messageUnreconciled = "the operator has not reconciled it yet"
	messageStatusBehind = "its current status is not delivered by the watch yet"
)

// Serve records that this operator reconciles a kind, whose custom resources may depend on
// the given kinds. The rules are the health rules of the kind's entry. Each custom resource
// is held until Settle. Call Serve again when the kind restarts: its objects are then
// unknown until Feed.Synced, and held again. Feeds of the kind that existed before are
// without effect.
func (s *Store) Serve(kind schema.GroupKind, on []schema.GroupKind, rules health.Rules) {
	s.users.Update(func() []types.UID {
		s.end(kind)
		for gvk, f := range s.feeds {
			if gvk.GroupKind() == kind {
				f.ended = true
				s.budget.ReleaseAll(f)
				delete(s.feeds, gvk)
			}
		}
		s.served[kind] = &service{
			on: slices.Clone(on), rules: rules, feed: s.newFeed(kind, true), since: s.now(), pending: sets.Set[types.UID]{},
		}
		s.doubtAll()
		return s.notify(s.changedKind(kind))
	})
}

// Suspend records that the reconciler of a kind is ending, to be replaced. No custom
// resource of the kind is ready until the next Serve or Stop.
func (s *Store) Suspend(kind schema.GroupKind) {
	s.users.Update(func() []types.UID {
		serves := s.served[kind]
		if serves == nil {
			return nil
		}
		serves.feed.suspended = true
		return s.notify(s.usersOf(s.ofKind(kind)))
	})
}

// Stop records that this operator no longer reconciles a kind.
func (s *Store) Stop(kind schema.GroupKind) {
	s.users.Update(func() []types.UID {
		s.end(kind)
		s.doubtAll()
		return s.notify(s.changedKind(kind))
	})
}

// end drops a served kind, the holds of its custom resources, and which deletions wait: they
// check again when their kind has started.
func (s *Store) end(kind schema.GroupKind) {
	serves := s.served[kind]
	if serves == nil {
		return
	}
	serves.feed.ended = true
	for uid := range serves.feed.uids {
		delete(s.holds, uid)
	}
	maps.DeleteFunc(s.blocked, func(key Key, _ dependents) bool { return key.GroupKind == kind })
	delete(s.served, kind)
}

// Expect records which custom resources of a served kind exist. Until each of them was Set
// or forgotten after Serve, they may depend on any object of the kinds given to Serve. More
// custom resources are added to those of earlier calls.
func (s *Store) Expect(kind schema.GroupKind, uids []types.UID) {
	s.users.Update(func() []types.UID {
		serves := s.served[kind]
		if serves == nil || len(serves.on) == 0 {
			return nil
		}
		serves.expected = true
		for _, uid := range uids {
			if u := s.byUID[uid]; u == nil || u.during != serves {
				serves.pending.Insert(uid)
			}
		}
		if serves.feed.synced {
			serves.dropDeleted()
		}
		s.doubtAll()
		return s.notify(nil)
	})
}

// reconciled records that a custom resource is no longer pending.
func (s *Store) reconciled(serves *service, uid types.UID) {
	if serves.pending.Has(uid) && serves.pending.Delete(uid).Len() == 0 {
		s.doubtAll()
	}
}

// dropDeleted drops expected custom resources that do not exist.
func (s *service) dropDeleted() {
	for uid := range s.pending {
		if _, exists := s.feed.uids[uid]; !exists {
			s.pending.Delete(uid)
		}
	}
}

// complete reports whether all dependencies of the kind's custom resources are known. If
// they are not, until is when the store stops to wait, or the zero time.
func (s *service) complete(now time.Time) (complete bool, until time.Time) {
	if s.expected {
		return len(s.pending) == 0, time.Time{}
	}
	until = s.since.Add(expectTimeout)
	return !now.Before(until), until
}

// Hold makes a served custom resource not ready, whatever its status says.
func (s *Store) Hold(uid types.UID, why string) { s.setHold(uid, hold{why: why}) }

// Settle ends the hold of a served custom resource when the store has the resourceVersion or
// a newer one. Its status then decides whether it is ready.
func (s *Store) Settle(uid types.UID, resourceVersion string) {
	s.setHold(uid, hold{resourceVersion: resourceVersion})
}

func (s *Store) setHold(uid types.UID, h hold) {
	s.users.Update(func() []types.UID {
		before, known := s.holds[uid]
		if known && before == h {
			return nil
		}
		s.holds[uid] = h
		f, name := s.locate(uid)
		if f == nil {
			return nil
		}
		o := f.get(name)
		return s.notify(s.changedObject(f, Key{f.kind, name}, o, o))
	})
}

// locate finds a custom resource of a served kind. The feed is nil if it does not exist.
func (s *Store) locate(uid types.UID) (*Feed, types.NamespacedName) {
	for _, serves := range s.served {
		if name, found := serves.feed.uids[uid]; found {
			return serves.feed, name
		}
	}
	return nil, types.NamespacedName{}
}

// heldBecause returns why a custom resource of a served kind is held, "" if it is not.
func (s *Store) heldBecause(o *object) string {
	h, known := s.holds[o.GetUID()]
	switch {
	case !known:
		return messageUnreconciled
	case h.why != "":
		return oneLine(h.why)
	case h.resourceVersion == "" || o.isAtLeast(h.resourceVersion):
		return ""
	default:
		return messageStatusBehind
	}
}

// Has reports whether the store has this version of an object, or a newer one.
func (s *Store) Has(key Key, resourceVersion string) bool {
	s.users.Mu.Lock()
	defer s.users.Mu.Unlock()
	o := s.known(key)
	return o != nil && o.isAtLeast(resourceVersion)
}

// Version returns the newest known resourceVersion of an object, empty if the store does not
// have the object.
func (s *Store) Version(key Key) string {
	s.users.Mu.Lock()
	defer s.users.Mu.Unlock()
	if o := s.known(key); o != nil {
		return o.GetResourceVersion()
	}
	return ""
}

// known returns an object that the store has, or nil. The caller holds the lock.
func (s *Store) known(key Key) *object {
	for _, t := range s.candidates(key) {
		f := s.feedOf(t.ref.Kind)
		if f == nil {
			continue
		}
		if o := f.get(key.NamespacedName); o != nil {
			return o
		}
	}
	return nil
}
