package inputs

import (
	"iter"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// EventHandler returns the handler of an informer's events: update gets objects that
// were added or changed, and remove those that were deleted.
func EventHandler[T any](update, remove func(T)) cache.ResourceEventHandler {
	call := func(f func(T), object any) {
		if typed, ok := object.(T); ok {
			f(typed)
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

// Index holds, for things of a kind, who uses them. It is not safe for
// concurrent use.
type Index[T comparable] struct {
	byThing map[T]map[types.UID]struct{}
	byUser  map[types.UID][]T
}

// NewIndex returns an index of no uses.
func NewIndex[T comparable]() Index[T] {
	return Index[T]{byThing: map[T]map[types.UID]struct{}{}, byUser: map[types.UID][]T{}}
}

// Set says what a user uses, in place of what was said before, and returns what
// nobody uses any more.
func (i Index[T]) Set(user types.UID, things []T) (unused []T) {
	before := i.byUser[user]
	if slices.Equal(before, things) {
		return nil
	}
	for _, thing := range things {
		if i.byThing[thing] == nil {
			i.byThing[thing] = map[types.UID]struct{}{}
		}
		i.byThing[thing][user] = struct{}{}
	}
	for _, thing := range before {
		if slices.Contains(things, thing) || !i.Used(thing) {
			continue
		}
		delete(i.byThing[thing], user)
		if len(i.byThing[thing]) == 0 {
			delete(i.byThing, thing)
			unused = append(unused, thing)
		}
	}
	i.byUser[user] = things
	if len(things) == 0 {
		delete(i.byUser, user)
	}
	return unused
}

// Used reports whether anybody uses a thing.
func (i Index[T]) Used(thing T) bool { return len(i.byThing[thing]) > 0 }

// All are all that somebody uses, in any order.
func (i Index[T]) All() iter.Seq[T] { return maps.Keys(i.byThing) }

// Users are those who use some of these things, each once, in any order.
func (i Index[T]) Users(things ...T) []types.UID {
	found := map[types.UID]struct{}{}
	for _, thing := range things {
		maps.Copy(found, i.byThing[thing])
	}
	return slices.Collect(maps.Keys(found))
}
