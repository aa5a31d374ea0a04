package observed

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/inputs"
)

// Store holds the objects that the watches have returned, and which custom resources use
// them. The zero Store is not usable; call NewStore. Its methods may be called
// concurrently.
type Store struct {
	users  *inputs.Tracker[bucket]
	read   Reader
	limits inputs.Limits
	budget *inputs.Budget

	// The other fields are guarded by users.

	// objects are the objects of each bucket, by name.
	objects map[bucket]map[string]*Object
	at      map[object]*Object
	// refused are the buckets of the objects that the budget refuses until other objects
	// are smaller or deleted, by namespace. The key is "" if the limit of all namespaces
	// is exceeded.
	refused map[string]map[object]bucket
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

// Reader reads an object from the API server.
type Reader func(context.Context, schema.GroupVersionKind, types.NamespacedName) (*unstructured.Unstructured, error)

// NewStore returns an empty Store. It calls changed without holding a lock.
func NewStore(read Reader, changed func(types.UID)) *Store {
	return &Store{
		users:   inputs.NewTracker[bucket](changed),
		read:    read,
		limits:  inputs.FieldLimits,
		budget:  inputs.NewBudget(inputs.FieldLimits),
		objects: map[bucket]map[string]*Object{},
		at:      map[object]*Object{},
		refused: map[string]map[object]bucket{},
		synced:  map[Watch]bool{},
		failed:  map[Watch]string{},
	}
}

// notListed is the reason if the watch is still listing objects.
const notListed = "the objects are not listed yet"

// Select returns the objects of each selection, sorted by name, or the reason why they are
// missing. Callers must not change the objects. From now on the user is notified of changes
// in these selections, and of no others.
//
// Objects of a selection that the budget has refused are missing, or are read if there is
// room for them now. There is no request otherwise.
func (s *Store) Select(ctx context.Context, user types.UID, selections []Selection) (objects map[string]any, missing map[string]string) {
	s.readmit(ctx, user, selections)
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
			if refusal := found[name].refusal; refusal.Message != "" {
				// An incomplete list would give wrong results.
				missing[selection.Name] = fmt.Sprintf("%s %s is not read: %s", selection.Kind, name, refusal.Message)
				break
			}
			list = append(list, found[name].content)
		}
		if missing[selection.Name] == "" {
			objects[selection.Name] = list
		}
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
func (f *Feed) Synced() {
	s, w := f.store, f.watch
	s.users.Update(func() []types.UID {
		if s.synced[w] || f.ended {
			return nil
		}
		s.synced[w] = true
		delete(s.failed, w)
		return s.usersOf(w)
	})
}

// Failed records why a watch fails, and reports whether the reason is new. It ignores
// failures after Synced, because watches end and restart regularly.
func (f *Feed) Failed(reason string) (isNew bool) {
	s, w := f.store, f.watch
	s.users.Update(func() []types.UID {
		if f.ended || s.synced[w] || s.failed[w] == reason {
			return nil
		}
		isNew = true
		s.failed[w] = reason
		return s.usersOf(w)
	})
	return isNew
}

// End removes all objects, because the watch has ended. The feed is then without effect.
func (f *Feed) End() {
	s := f.store
	s.users.Update(func() (waiting []types.UID) {
		f.ended = true
		for name, o := range s.at {
			if name.watch == f.watch {
				waiting = append(waiting, s.remove(o)...)
			}
		}
		delete(s.synced, f.watch)
		delete(s.failed, f.watch)
		s.budget.ReleaseAll(f.watch)
		return once(waiting)
	})
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

// setRefused records whether an object waits for room.
func (s *Store) setRefused(o *Object, refusal inputs.Refusal) {
	for _, namespace := range []string{o.name.Namespace, ""} {
		delete(s.refused[namespace], o.name)
		if len(s.refused[namespace]) == 0 {
			delete(s.refused, namespace)
		}
	}
	if refusal.Message == "" || refusal.Permanent {
		return
	}
	namespace := o.name.Namespace
	if refusal.Total {
		namespace = ""
	}
	if s.refused[namespace] == nil {
		s.refused[namespace] = map[object]bucket{}
	}
	s.refused[namespace][o.name] = o.bucket
}

// waiting returns the users of refused objects after an object in a namespace has become
// smaller or was deleted.
func (s *Store) waiting(namespace string) []types.UID {
	buckets := slices.Collect(maps.Values(s.refused[namespace]))
	return s.users.Users(slices.AppendSeq(buckets, maps.Values(s.refused[""]))...)
}

// maxReads limits the requests of one Select, which runs in a worker.
const maxReads = 20

// readmit reads the refused objects of the selections, if the budget has room for them now. The
// informer dropped their content, and delivers it only with their next change.
func (s *Store) readmit(ctx context.Context, user types.UID, selections []Selection) {
	var found []*Object
	s.users.Mu.Lock()
	for _, selection := range selections {
		if len(s.refused[selection.Namespace])+len(s.refused[""]) == 0 {
			continue
		}
		for _, o := range s.objects[selection.bucket(selection.Namespace, selection.Labels)] {
			if o.content == nil && !o.refusal.Permanent && s.budget.Fits(o.name.Namespace, o.bytes) && len(found) < maxReads {
				found = append(found, o)
			}
		}
	}
	s.users.Mu.Unlock()
	for _, refused := range found {
		w := refused.name.watch
		whole, err := s.read(ctx, w.GroupVersionKind, refused.name.NamespacedName)
		if apply.AnswerOf(err) == apply.Gone {
			// The informer reports the deletion.
			continue
		}
		if err != nil {
			// The object stays refused until its next change, or that of another object.
			return
		}
		s.users.Update(func() []types.UID {
			if s.at[refused.name] != refused {
				// The informer has delivered a change meanwhile.
				return nil
			}
			affected := s.observe(s.admit(w, w.tree(), whole))
			return slices.DeleteFunc(affected, func(uid types.UID) bool { return uid == user })
		})
	}
	if len(found) == maxReads {
		s.users.Update(func() []types.UID { return []types.UID{user} })
	}
}
