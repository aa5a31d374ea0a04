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

// Tracker holds which custom resources use which objects, guards what a store knows of
// the objects, and reports their changes to the users.
type Tracker[T comparable] struct {
	sync.Mutex
	Index[T]
	// changed is called, without the lock, for each user of an object that was added,
	// changed or deleted.
	changed func(types.UID)
}

// NewTracker returns a Tracker without uses.
func NewTracker[T comparable](changed func(types.UID)) *Tracker[T] {
	return &Tracker[T]{Index: NewIndex[T](), changed: changed}
}

// Update calls a function under the lock, and then reports a change to the users that
// the function returns.
func (t *Tracker[T]) Update(update func() []types.UID) {
	t.Lock()
	users := update()
	t.Unlock()
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

// Index holds which custom resources use which objects. It is not safe for concurrent
// use.
type Index[T comparable] struct {
	byObject map[T]sets.Set[types.UID]
	byUser   map[types.UID][]T
}

// NewIndex returns an index without uses.
func NewIndex[T comparable]() Index[T] {
	return Index[T]{byObject: map[T]sets.Set[types.UID]{}, byUser: map[types.UID][]T{}}
}

// Set replaces the objects that a user uses. It returns the objects that no user uses
// any more.
func (i Index[T]) Set(user types.UID, objects []T) (unused []T) {
	before := i.byUser[user]
	if slices.Equal(before, objects) {
		return nil
	}
	for _, object := range objects {
		if i.byObject[object] == nil {
			i.byObject[object] = sets.Set[types.UID]{}
		}
		i.byObject[object].Insert(user)
	}
	for _, object := range before {
		if slices.Contains(objects, object) || !i.Used(object) {
			continue
		}
		if i.byObject[object].Delete(user).Len() == 0 {
			delete(i.byObject, object)
			unused = append(unused, object)
		}
	}
	i.byUser[user] = objects
	if len(objects) == 0 {
		delete(i.byUser, user)
	}
	return unused
}

// Used reports whether any custom resource uses an object.
func (i Index[T]) Used(object T) bool { return len(i.byObject[object]) > 0 }

// All returns all objects in use, in any order.
func (i Index[T]) All() iter.Seq[T] { return maps.Keys(i.byObject) }

// Users returns the users of any of these objects, each once, in any order.
func (i Index[T]) Users(objects ...T) []types.UID {
	found := sets.Set[types.UID]{}
	for _, object := range objects {
		maps.Copy(found, i.byObject[object])
	}
	return found.UnsortedList()
}
