package observed

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/inputs"
)

// Store holds what the watches have seen, and who looks at it. The zero Store
// is not usable; call NewStore. Its methods may be called concurrently.
type Store struct {
	users *inputs.Tracker[bucket]

	// The other fields are guarded by users.

	// objects are those of a place, by name.
	objects map[bucket]map[string]*unstructured.Unstructured
	// at is where an object is.
	at map[object]bucket
	// synced are the watches that have seen all that is there, and failed why
	// others have not.
	synced map[Watch]bool
	failed map[Watch]string
}

// object names an object of a watch.
type object struct {
	watch Watch
	types.NamespacedName
}

// NewStore returns a store that knows of no object. The function changed is
// called outside any lock.
func NewStore(changed func(types.UID)) *Store {
	return &Store{
		users:   inputs.NewTracker[bucket](changed),
		objects: map[bucket]map[string]*unstructured.Unstructured{},
		at:      map[object]bucket{},
		synced:  map[Watch]bool{},
		failed:  map[Watch]string{},
	}
}

// unseen is why there are no objects where a watch has only begun.
const unseen = "it is not known yet what is there"

// Select returns the objects of each selection, by its name, in the order of
// their names, or why they cannot be told. Nobody may change them. From then on
// the user is told of changes of what these selections contain, and of no other.
func (s *Store) Select(user types.UID, selections []Selection) (objects map[string]any, missing map[string]string) {
	s.users.Mu.Lock()
	defer s.users.Mu.Unlock()
	objects, missing = map[string]any{}, map[string]string{}
	places := make([]bucket, len(selections))
	for i, selection := range selections {
		places[i] = selection.bucket(selection.Namespace, selection.Labels)
		if !s.synced[selection.Watch] {
			missing[selection.Name] = selection.Kind + ": " + cmp.Or(s.failed[selection.Watch], unseen)
			continue
		}
		found := s.objects[places[i]]
		list := make([]any, 0, len(found))
		for _, name := range slices.Sorted(maps.Keys(found)) {
			list = append(list, found[name].Object)
		}
		objects[selection.Name] = list
	}
	s.users.Set(user, places)
	return objects, missing
}

// Forget ends what a user looks at.
func (s *Store) Forget(user types.UID) {
	s.users.Mu.Lock()
	defer s.users.Mu.Unlock()
	s.users.Set(user, nil)
}

// Synced says that a watch has seen all that is there.
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

// Failed says why a watch sees nothing, and returns whether that is news. Once
// it has seen all, it is no matter: watches end and begin again all the time.
func (s *Store) Failed(w Watch, why string) (news bool) {
	s.users.Update(func() []types.UID {
		if s.synced[w] || s.failed[w] == why {
			return nil
		}
		news = true
		s.failed[w] = why
		return s.usersOf(w)
	})
	return news
}

// usersOf returns who looks at any place of a watch.
func (s *Store) usersOf(w Watch) []types.UID {
	var places []bucket
	for p := range s.users.All() {
		if p.watch == w {
			places = append(places, p)
		}
	}
	return s.users.Users(places...)
}
