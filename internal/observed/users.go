package observed

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// users tells who looks at a place.
type users struct {
	byPlace map[place]map[types.UID]struct{}
	byUser  map[types.UID][]place
}

func newUsers() users {
	return users{byPlace: map[place]map[types.UID]struct{}{}, byUser: map[types.UID][]place{}}
}

// set says what a user looks at, in place of what was said before.
func (u users) set(user types.UID, places []place) {
	before := u.byUser[user]
	if slices.Equal(before, places) {
		return
	}
	for _, p := range before {
		delete(u.byPlace[p], user)
		if len(u.byPlace[p]) == 0 {
			delete(u.byPlace, p)
		}
	}
	for _, p := range places {
		if u.byPlace[p] == nil {
			u.byPlace[p] = map[types.UID]struct{}{}
		}
		u.byPlace[p][user] = struct{}{}
	}
	u.byUser[user] = places
	if len(places) == 0 {
		delete(u.byUser, user)
	}
}

// of returns who looks at some of these places, each once.
func (u users) of(places ...place) []types.UID {
	found := map[types.UID]struct{}{}
	for _, p := range places {
		maps.Copy(found, u.byPlace[p])
	}
	return slices.Collect(maps.Keys(found))
}

// ofWatch returns who looks at any place of a watch.
func (u users) ofWatch(w Watch) []types.UID {
	var places []place
	for p := range u.byPlace {
		if p.watch == w {
			places = append(places, p)
		}
	}
	return u.of(places...)
}
