package dependencies

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Dependent is a custom resource that delays the deletion of one that it depends on.
type Dependent struct {
	// Key has no name if the dependents are not known yet. Message then says why.
	Key     Key
	Message string
}

// dependents is the result of Dependents, with an absolute time.
type dependents struct {
	blocking []Dependent
	until    time.Time
}

func (d dependents) equal(other dependents) bool {
	return slices.Equal(d.blocking, other.blocking) && d.until.Equal(other.until)
}

// Dependents returns what delays the deletion of a served custom resource: the custom
// resources with a release that depend on it, except the members of its own cycles.
// Each is blocking while it exists, and at most for its Bound after its deletion has
// begun. The result changes by itself after the given duration if it is not 0. The
// custom resource is notified of other changes until nothing is blocking.
func (s *Store) Dependents(of Key, now time.Time) (blocking []Dependent, after time.Duration) {
	s.users.Mu.Lock()
	defer s.users.Mu.Unlock()
	found := s.dependents(of, now)
	delete(s.blocked, of)
	if len(found.blocking) == 0 {
		return nil, 0
	}
	s.blocked[of] = found
	if !found.until.IsZero() {
		after = max(found.until.Sub(now), time.Millisecond)
	}
	return slices.Clone(found.blocking), after
}

func (s *Store) dependents(of Key, now time.Time) (found dependents) {
	block := func(key Key, message string, until time.Time) {
		found.blocking = append(found.blocking, Dependent{key, message})
		if !until.IsZero() && (found.until.IsZero() || until.Before(found.until)) {
			found.until = until
		}
	}
	for kind, serves := range s.served {
		if complete, until := serves.complete(now); !complete && slices.Contains(serves.on, of.GroupKind) {
			message := fmt.Sprintf("the operator has yet to reconcile custom resources of the kind %s", kind)
			block(Key{GroupKind: kind}, message, until)
		}
	}
	if s.selectedUnlisted(of) {
		block(Key{GroupKind: of.GroupKind}, messageNotListed, time.Time{})
	}
	var component sets.Set[Key]
	if u := s.byKey[of]; u != nil {
		component = u.component
	}
	for _, uid := range s.usersOf(s.candidates(of)) {
		u := s.byUID[uid]
		if !u.Released || component.Has(u.Key) || !s.dependsOn(u, of) {
			continue
		}
		switch end := u.Deleting.Add(u.Bound); {
		case u.Deleting.IsZero():
			block(u.Key, "", time.Time{})
		case now.Before(end):
			block(u.Key, "is being deleted", end)
		}
	}
	slices.SortFunc(found.blocking, func(a, b Dependent) int { return compareKeys(a.Key, b.Key) })
	return found
}

// selectedUnlisted reports whether selectors may match an object of a kind that is not listed
// yet.
func (s *Store) selectedUnlisted(key Key) bool {
	return slices.ContainsFunc(s.candidates(key), func(t *target) bool {
		f := s.feedOf(t.ref.Kind)
		return t.selector != nil && (f == nil || !f.synced)
	})
}

// doubt marks what references include as doubtful, before or after they change.
func (s *Store) doubt(refs []Ref) {
	if len(s.blocked) == 0 {
		return
	}
	for _, ref := range refs {
		t, key := s.targets[ref], ref.key()
		if f := s.feedOf(ref.Kind); t.selector != nil && (f == nil || !f.synced) {
			// The selector may match any of them.
			s.doubtAll()
			return
		}
		for _, key.Name = range t.members(s) {
			s.doubtful.Insert(key)
			// The object may be cluster-scoped.
			clusterScoped := key
			clusterScoped.Namespace = ""
			s.doubtful.Insert(clusterScoped)
		}
	}
}

// doubtAll marks all custom resources whose deletion waits as doubtful.
func (s *Store) doubtAll() { s.doubtful.Insert(slices.Collect(maps.Keys(s.blocked))...) }

// unblocked returns the doubtful custom resources whose result of Dependents has changed.
func (s *Store) unblocked(now time.Time) (changed []types.UID) {
	defer clear(s.doubtful)
	for key := range s.doubtful {
		before, waits := s.blocked[key]
		if !waits {
			continue
		}
		found := s.dependents(key, now)
		if found.equal(before) {
			continue
		}
		s.blocked[key] = found
		if uid, known := s.uidOf(key); known {
			changed = append(changed, uid)
		}
	}
	return changed
}

// uidOf returns the UID of a served custom resource.
func (s *Store) uidOf(key Key) (types.UID, bool) {
	if serves := s.served[key.GroupKind]; serves != nil {
		if o := serves.feed.get(key.NamespacedName); o != nil {
			return o.GetUID(), true
		}
	}
	if u := s.byKey[key]; u != nil {
		return u.UID, true
	}
	return "", false
}
