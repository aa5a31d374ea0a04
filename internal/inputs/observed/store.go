package observed

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/inputs"
)

// Store holds the objects that the watches have returned, and which custom resources use
// them. The zero Store is not usable; call NewStore. Its methods may be called
// concurrently.
type Store struct {
	users *inputs.Tracker[bucket]

	// The other fields are guarded by users.

	// objects are the objects of each bucket, by name.
	objects map[bucket]map[string]*unstructured.Unstructured
	// at is the bucket of each object.
	at map[object]bucket
	// synced are the watches that have listed all existing objects. failed is the reason
	// for each of the others.
	synced map[Watch]bool
	failed map[Watch]string
}

// object is the name of an object of a watch.
type object struct {
	watch Watch
	types.NamespacedName
}

// NewStore returns an empty Store. It calls changed without holding a lock.
func NewStore(changed func(types.UID)) *Store {
	return &Store{
		users:   inputs.NewTracker[bucket](changed),
		objects: map[bucket]map[string]*unstructured.Unstructured{},
		at:      map[object]bucket{},
		synced:  map[Watch]bool{},
		failed:  map[Watch]string{},
	}
}

// notListed is the reason if the watch is still listing objects.
const notListed = "the objects are not listed yet"

// Select returns the objects of each selection, sorted by name, or the reason why they are
// missing. Callers must not change the objects. From now on the user is notified of changes
// in these selections, and of no others.
func (s *Store) Select(user types.UID, selections []Selection) (objects map[string]any, missing map[string]string) {
	s.users.Mu.Lock()
	defer s.users.Mu.Unlock()
	objects, missing = map[string]any{}, map[string]string{}
	buckets := make([]bucket, len(selections))
	for i, selection := range selections {
		buckets[i] = selection.bucket(selection.Namespace, selection.Labels)
		if !s.synced[selection.Watch] {
			missing[selection.Name] = selection.Kind + ": " + cmp.Or(s.failed[selection.Watch], notListed)
			continue
		}
		found := s.objects[buckets[i]]
		list := make([]any, 0, len(found))
		for _, name := range slices.Sorted(maps.Keys(found)) {
			list = append(list, found[name].Object)
		}
		objects[selection.Name] = list
	}
	s.users.Set(user, buckets)
	return objects, missing
}

// Forget removes the selections of a user.
func (s *Store) Forget(user types.UID) {
	s.users.Mu.Lock()
	defer s.users.Mu.Unlock()
	s.users.Set(user, nil)
}

// Synced records that a watch has listed all existing objects.
func (s *Store) Synced(w Watch) {
	s.users.Update(func() []types.UID {
		if s.synced[w] {
			return nil
		}
		s.synced[w] = true
		delete(s.failed, w)
		return s.usersOf(w)
	})
}

// Failed records why a watch fails, and reports whether the reason is new. It ignores
// failures after Synced, because watches end and restart regularly.
func (s *Store) Failed(w Watch, reason string) (isNew bool) {
	s.users.Update(func() []types.UID {
		if s.synced[w] || s.failed[w] == reason {
			return nil
		}
		isNew = true
		s.failed[w] = reason
		return s.usersOf(w)
	})
	return isNew
}

// usersOf returns the users of all buckets of a watch.
func (s *Store) usersOf(w Watch) []types.UID {
	var buckets []bucket
	for b := range s.users.All() {
		if b.watch == w {
			buckets = append(buckets, b)
		}
	}
	return s.users.Users(buckets...)
}
