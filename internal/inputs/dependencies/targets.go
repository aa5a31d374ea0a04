package dependencies

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Messages of dependencies that are not ready.
const (
	messageNotListed = "the objects are not listed yet"
	messageSuspended = "the operator is restarting the kind"
	messageNotFound  = "not found"
	messageNoMatch   = "no object matches the selector"
)

// target is what a Ref refers to. Users with equal references share it.
type target struct {
	ref Ref
	// selector is nil if the Ref names an object.
	selector labels.Selector

	// The other fields are for selectors.

	// names are the matching objects in order, valid if listed is true.
	names  []string
	listed bool
	// unready are those that are not ready, valid if evaluated is true, until the time
	// validUntil if it is not zero.
	unready    []unreadyObject
	evaluated  bool
	validUntil time.Time
}

type unreadyObject struct {
	name    string
	message string
	next    time.Time
}

// link replaces the references of a user.
func (s *Store) link(uid types.UID, refs []Ref) {
	for _, ref := range refs {
		if s.targets[ref] != nil {
			continue
		}
		t := &target{ref: ref}
		if ref.Name == "" {
			selector, err := labels.Parse(ref.Selector)
			if err != nil {
				// Package watches has checked it. Nothing is safer than everything.
				selector = labels.Nothing()
			}
			t.selector = selector
		}
		s.targets[ref] = t
		s.at[ref.key()] = append(s.at[ref.key()], t)
	}
	for _, unused := range s.users.Set(uid, refs) {
		key := unused.key()
		s.at[key] = slices.DeleteFunc(s.at[key], func(t *target) bool { return t.ref == unused })
		if len(s.at[key]) == 0 {
			delete(s.at, key)
		}
		delete(s.targets, unused)
	}
}

// candidates returns the targets that name an object, and those with a selector for its
// kind and namespace. A reference to a cluster-scoped object has a namespace if its author
// did not know the scope.
func (s *Store) candidates(key Key) []*target {
	if key.Namespace == "" {
		return slices.DeleteFunc(s.ofKind(key.GroupKind), func(t *target) bool { return t.ref.Name != "" && t.ref.Name != key.Name })
	}
	place := key
	place.Name = ""
	return slices.Concat(s.at[key], s.at[place])
}

// ofKind returns the targets of a kind.
func (s *Store) ofKind(kind schema.GroupKind) (found []*target) {
	for ref, t := range s.targets {
		if ref.Kind.GroupKind() == kind {
			found = append(found, t)
		}
	}
	return found
}

// matches reports whether the target includes an object that has its kind and namespace.
// The object is nil if it does not exist.
func (t *target) matches(name string, o *object) bool {
	if t.selector == nil {
		return t.ref.Name == name
	}
	if o != nil {
		if _, is := o.Object.(*refused); is {
			return true
		}
	}
	return o != nil && t.selector.Matches(labels.Set(o.GetLabels()))
}

// includes reports whether the target includes a custom resource for one of its users. A
// user is never selected by its own selector.
func (t *target) includes(s *Store, key, user Key) bool {
	inPlace := key.GroupKind == t.ref.Kind.GroupKind() && (key.Namespace == t.ref.Namespace || key.Namespace == "")
	if t.selector == nil || !inPlace || key == user {
		return t.selector == nil && inPlace && key.Name == t.ref.Name
	}
	_, found := slices.BinarySearch(t.members(s), key.Name)
	return found
}

// members returns the names of the objects in order.
func (t *target) members(s *Store) []string {
	if t.selector == nil {
		return []string{t.ref.Name}
	}
	if !t.listed {
		t.listed, t.names = true, nil
		if f := s.feedOf(t.ref.Kind); f != nil {
			for _, namespace := range slices.Compact([]string{t.ref.Namespace, ""}) {
				for name, o := range f.objects[namespace] {
					if t.matches(name, o) {
						t.names = append(t.names, name)
					}
				}
			}
		}
		slices.Sort(t.names)
	}
	return t.names
}

// outdate drops what the target holds about its objects. The argument reports whether other
// objects match now.
func (t *target) outdate(members bool) {
	t.evaluated = false
	if members {
		t.listed = false
	}
}

// unreadyFor returns why the target is not ready for a user, and when that changes by
// itself. It returns zero values if the target is ready.
func (t *target) unreadyFor(s *Store, user Key, now time.Time) (Unready, time.Time) {
	f, key := s.feedOf(t.ref.Kind), t.ref.key()
	because := func(message string) Unready { return Unready{Key: key, Selector: t.ref.Selector, Message: message} }
	switch {
	case f == nil:
		return because(messageNotListed), time.Time{}
	case !f.synced || f.failed != "":
		return because(cmp.Or(f.failed, messageNotListed)), time.Time{}
	case f.suspended:
		return because(messageSuspended), time.Time{}
	case t.selector == nil:
		o := f.get(key.NamespacedName)
		if o == nil {
			return because(messageNotFound), time.Time{}
		}
		message, next := s.readiness(o, f, t.ref.Ready, now)
		if message == "" {
			return Unready{}, time.Time{}
		}
		return because(message), next
	}
	t.evaluate(s, f, now)
	for _, found := range t.unready {
		if key.Name = found.name; key != user {
			return because(found.message), found.next
		}
	}
	key.Name = ""
	own := 0
	if t.hasMember(s, user) {
		own = 1
	}
	if len(t.members(s)) == own {
		return because(messageNoMatch), time.Time{}
	}
	return Unready{}, time.Time{}
}

// hasMember reports whether the selector matches an object, which may be the user.
func (t *target) hasMember(s *Store, key Key) bool { return t.includes(s, key, Key{}) }

// evaluate computes which of the selected objects are not ready.
func (t *target) evaluate(s *Store, f *Feed, now time.Time) {
	if t.evaluated && (t.validUntil.IsZero() || now.Before(t.validUntil)) {
		return
	}
	t.evaluated, t.unready, t.validUntil = true, nil, time.Time{}
	for _, name := range t.members(s) {
		message, next := s.readiness(f.get(types.NamespacedName{Namespace: t.ref.Namespace, Name: name}), f, t.ref.Ready, now)
		if message == "" {
			continue
		}
		t.unready = append(t.unready, unreadyObject{name, message, next})
		if !next.IsZero() && (t.validUntil.IsZero() || next.Before(t.validUntil)) {
			t.validUntil = next
		}
	}
}

// usersOf returns the users of targets, each once.
func (s *Store) usersOf(targets []*target) []types.UID {
	refs := make([]Ref, len(targets))
	for i, t := range targets {
		refs[i] = t.ref
	}
	return s.users.Users(refs...)
}

// changedKind returns the users to check after the objects of a kind were replaced, or after
// its watch has synced or failed.
func (s *Store) changedKind(kind schema.GroupKind) []types.UID {
	targets := s.ofKind(kind)
	for _, t := range targets {
		t.outdate(true)
	}
	return append(s.usersOf(targets), s.updateCycles(s.usersOf(targets)...)...)
}
