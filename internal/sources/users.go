package sources

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// users tells which custom resources use an object.
type users struct {
	byRef  map[Ref]map[types.UID]struct{}
	byUser map[types.UID][]Ref
}

func newUsers() users {
	return users{byRef: map[Ref]map[types.UID]struct{}{}, byUser: map[types.UID][]Ref{}}
}

// set says what a custom resource uses, in place of what was said before, and
// returns what nobody uses any more.
func (u users) set(user types.UID, from []Source) (unused []Ref) {
	before := u.byUser[user]
	refs := make([]Ref, 0, len(from))
	for _, source := range from {
		if !slices.Contains(refs, source.Ref) {
			refs = append(refs, source.Ref)
		}
	}
	if slices.Equal(before, refs) {
		return nil
	}
	for _, ref := range refs {
		if u.byRef[ref] == nil {
			u.byRef[ref] = map[types.UID]struct{}{}
		}
		u.byRef[ref][user] = struct{}{}
	}
	for _, ref := range before {
		if slices.Contains(refs, ref) {
			continue
		}
		delete(u.byRef[ref], user)
		if len(u.byRef[ref]) == 0 {
			delete(u.byRef, ref)
			unused = append(unused, ref)
		}
	}
	u.byUser[user] = refs
	if len(refs) == 0 {
		delete(u.byUser, user)
	}
	return unused
}

func (u users) has(ref Ref) bool { return len(u.byRef[ref]) > 0 }

func (u users) of(ref Ref) []types.UID { return slices.Collect(maps.Keys(u.byRef[ref])) }
