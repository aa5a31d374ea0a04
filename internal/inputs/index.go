package inputs

import (
	"iter"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
)

// Tracker holds which custom resources use which objects, and reports changes of the
// objects to their users. It also guards what a store knows of the objects.
type Tracker[T comparable] struct {
	Mu       sync.Mutex
	byObject map[T]sets.Set[types.UID]
	byUser   map[types.UID][]T
	// changed is called, without the lock, for each user of an object that was added,
	// changed or deleted.
	changed func(types.UID)
}

// NewTracker returns a Tracker without uses.
func NewTracker[T comparable](changed func(types.UID)) *Tracker[T] {
	return &Tracker[T]{byObject: map[T]sets.Set[types.UID]{}, byUser: map[types.UID][]T{}, changed: changed}
}

// Update calls a function under the lock, and then reports a change to the users that
// the function returns.
func (t *Tracker[T]) Update(update func() []types.UID) {
	t.Mu.Lock()
	users := update()
	t.Mu.Unlock()
	for _, user := range users {
		t.changed(user)
	}
}

// EventHandler returns the handler of an informer's events. It calls update for objects
// that were added or changed, and remove for those that were deleted, as Update does.
func EventHandler[T comparable, O any](t *Tracker[T], update, remove func(O) []types.UID) cache.ResourceEventHandler {
	call := func(f func(O) []types.UID, object any) {
		if typed, ok := object.(O); ok {
			t.Update(func() []types.UID { return f(typed) })
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { call(update, object) },
		UpdateFunc: func(_, object any) { call(update, object) },
		DeleteFunc: func(object any) {
			if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			call(remove, object)
		},
	}
}

// The other methods require the lock Mu.

// Set replaces the objects that a user uses. It returns the objects that are left without
// users.
func (t *Tracker[T]) Set(user types.UID, objects []T) (unused []T) {
	before := t.byUser[user]
	if slices.Equal(before, objects) {
		return nil
	}
	for _, object := range objects {
		if t.byObject[object] == nil {
			t.byObject[object] = sets.Set[types.UID]{}
		}
		t.byObject[object].Insert(user)
	}
	for _, object := range before {
		if slices.Contains(objects, object) || !t.Used(object) {
			continue
		}
		if t.byObject[object].Delete(user).Len() == 0 {
			delete(t.byObject, object)
			unused = append(unused, object)
		}
	}
	t.byUser[user] = objects
	if len(objects) == 0 {
		delete(t.byUser, user)
	}
	return unused
}

// Used reports whether any custom resource uses an object.
func (t *Tracker[T]) Used(object T) bool { return len(t.byObject[object]) > 0 }

// All returns all objects in use, in any order.
func (t *Tracker[T]) All() iter.Seq[T] { return maps.Keys(t.byObject) }

// Users returns the users of any of these objects, each once, in any order.
func (t *Tracker[T]) Users(objects ...T) []types.UID {
	found := sets.Set[types.UID]{}
	for _, object := range objects {
		maps.Copy(found, t.byObject[object])
	}
	return found.UnsortedList()
}
