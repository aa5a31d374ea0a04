package dependencies

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// updateCycles updates the cycles after the dependencies of users have changed. It returns
// the previous and the present members of their cycles.
func (s *Store) updateCycles(changed ...types.UID) []types.UID {
	keys := sets.Set[Key]{}
	for _, uid := range changed {
		// Members of one component share it.
		if u := s.byUID[uid]; u != nil && !keys.Has(u.Key) {
			keys.Insert(u.Key)
			maps.Copy(keys, u.component)
		}
	}
	return s.recompute(keys)
}

// recompute computes the components of users: those whose dependencies have changed, and
// the previous members of their components. Other components are unchanged, because every
// new or former cycle contains one of these users.
func (s *Store) recompute(keys sets.Set[Key]) (affected []types.UID) {
	done := sets.Set[Key]{}
	for key := range keys {
		u := s.byKey[key]
		if u == nil || done.Has(key) {
			continue
		}
		component := s.componentOf(key)
		if component == nil {
			u.component, u.cycle = nil, nil
			affected = append(affected, u.UID)
			continue
		}
		affected = append(affected, s.setCycles(component)...)
		maps.Copy(done, component)
	}
	return affected
}

// largeComponent is the size above which the custom resources of a component share a cycle,
// which may contain only some of them. Otherwise each of them could have a cycle of its own
// that is as long as the component.
const largeComponent = 100

// setCycles updates the cycles of a component, and returns its custom resources.
func (s *Store) setCycles(component sets.Set[Key]) (affected []types.UID) {
	var shared []Key
	// intact holds which lists, by their first item, are still cycles.
	intact := map[*Key]bool{}
	for member := range component {
		u := s.byKey[member]
		u.component = component
		affected = append(affected, u.UID)
		large := len(component) > largeComponent
		if len(u.cycle) > 0 && (large && component.Has(u.cycle[0]) || slices.Contains(u.cycle, member)) {
			is, known := intact[&u.cycle[0]]
			if !known {
				is = s.isCycle(u.cycle)
				intact[&u.cycle[0]] = is
			}
			if is {
				shared = u.cycle
				continue
			}
		}
		if !large || shared == nil {
			shared = s.findCycle(member, component)
		}
		u.cycle = shared
	}
	return affected
}

// componentOf returns all custom resources that depend on a custom resource and that it
// depends on, directly or not. It returns nil if the custom resource does not depend on
// itself.
func (s *Store) componentOf(key Key) sets.Set[Key] {
	below := s.reachable(key, s.next, nil)
	if !below.Has(key) {
		return nil
	}
	return s.reachable(key, s.previous, below)
}

// step calls visit for each custom resource next to one in the graph, by target.
type step func(from Key, expand func(*target) bool, visit func(Key))

// next visits the dependencies of a custom resource.
func (s *Store) next(from Key, expand func(*target) bool, visit func(Key)) {
	u := s.byKey[from]
	if u == nil {
		return
	}
	for _, ref := range u.refs {
		t := s.targets[ref]
		if !expand(t) {
			continue
		}
		to := ref.key()
		for _, to.Name = range t.members(s) {
			if to.Namespace = ref.Namespace; s.byKey[to] == nil {
				to.Namespace = ""
			}
			if t.selector == nil || to != from {
				visit(to)
			}
		}
	}
}

// previous visits the custom resources that depend on a custom resource.
func (s *Store) previous(from Key, expand func(*target) bool, visit func(Key)) {
	for _, t := range s.candidates(from) {
		if !t.hasMember(s, from) || !expand(t) {
			continue
		}
		for _, uid := range s.users.Users(t.ref) {
			if to := s.byUID[uid].Key; t.selector == nil || to != from {
				visit(to)
			}
		}
	}
}

// reachable returns the custom resources that are reachable from the start, within a set if it is
// not nil. They include the start if a cycle contains it.
func (s *Store) reachable(start Key, walk step, within sets.Set[Key]) sets.Set[Key] {
	seen := sets.Set[Key]{}
	expanded := sets.Set[*target]{}
	queue := []Key{start}
	for len(queue) > 0 {
		from := queue[0]
		queue = queue[1:]
		walk(from, func(t *target) bool {
			// A target that many custom resources share is expanded at most twice: it leads
			// from the first one to all but itself, and the first one is not yet seen.
			if from == start {
				return true
			}
			known := expanded.Has(t)
			expanded.Insert(t)
			return !known
		}, func(to Key) {
			if s.byKey[to] != nil && !seen.Has(to) && (within == nil || within.Has(to)) {
				seen.Insert(to)
				queue = append(queue, to)
			}
		})
	}
	return seen
}

// findCycle returns a shortest cycle through a custom resource of a component, from the
// smallest Key. It returns nil if there is no cycle.
func (s *Store) findCycle(start Key, component sets.Set[Key]) []Key {
	from := map[Key]Key{}
	queue := []Key{start}
	for _, found := from[start]; !found && len(queue) > 0; _, found = from[start] {
		at := queue[0]
		queue = queue[1:]
		s.next(at, func(*target) bool { return true }, func(to Key) {
			if _, seen := from[to]; !seen && component.Has(to) {
				from[to] = at
				queue = append(queue, to)
			}
		})
	}
	cycle := []Key{start}
	for at, found := from[start]; at != start; at = from[at] {
		if !found {
			return nil
		}
		cycle = append(cycle, at)
	}
	slices.Reverse(cycle)
	smallest := slices.MinFunc(cycle, compareKeys)
	first := slices.Index(cycle, smallest)
	return slices.Concat(cycle[first:], cycle[:first])
}

func compareKeys(a, b Key) int {
	return slices.Compare([]string{a.Group, a.Kind, a.Namespace, a.Name}, []string{b.Group, b.Kind, b.Namespace, b.Name})
}

// isCycle reports whether each custom resource in a list depends on the next one, and the
// last one on the first.
func (s *Store) isCycle(keys []Key) bool {
	for i, key := range keys {
		if !s.dependsOn(s.byKey[key], keys[(i+1)%len(keys)]) {
			return false
		}
	}
	return len(keys) > 0
}

// dependsOn reports whether a user depends directly on a custom resource. The user may be
// nil.
func (s *Store) dependsOn(u *user, key Key) bool {
	return u != nil && slices.ContainsFunc(u.refs, func(ref Ref) bool { return s.targets[ref].includes(s, key, u.Key) })
}
