package inventory

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/chartwright/chartwright/internal/apply"
)

// Index holds the newest known state of every dependent, and what is expected
// of them. Call NewIndex. Its methods may be called concurrently.
type Index struct {
	mu      sync.RWMutex
	objects map[apply.Key]apply.State
	byOwner map[types.UID]map[apply.Key]struct{}
	// removed holds the UIDs of objects that this process deleted and the
	// watch has not seen go yet.
	removed    map[apply.Key]types.UID
	departures departures

	expected map[types.UID]map[apply.Key]apply.State
	// expectedBy finds the owner of an object that is gone, or whose owner
	// label is.
	expectedBy map[apply.Key]types.UID

	// drifted is told of owners whose objects are not what is expected, and
	// changed of those of which an object's health has changed.
	drifted func(owner types.UID)
	changed func(owner types.UID)

	// health is of the objects that have one and were seen since their spec
	// last changed.
	health map[apply.Key]Health
}

// NewIndex returns an empty index. The functions are called outside any lock:
// drifted when an object of an owner is not, or no longer, what is expected,
// and changed when an object of an owner has become ready, or is so no more.
func NewIndex(drifted, changed func(owner types.UID)) *Index {
	return &Index{
		objects:    map[apply.Key]apply.State{},
		byOwner:    map[types.UID]map[apply.Key]struct{}{},
		removed:    map[apply.Key]types.UID{},
		expected:   map[types.UID]map[apply.Key]apply.State{},
		expectedBy: map[apply.Key]types.UID{},
		drifted:    drifted,
		changed:    changed,
		health:     map[apply.Key]Health{},
	}
}

// Get returns the state of one object.
func (x *Index) Get(key apply.Key) (apply.State, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	s, ok := x.objects[key]
	return s, ok
}

// OwnedBy returns the objects that we applied for an owner.
func (x *Index) OwnedBy(owner types.UID) []apply.State {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.ownedBy(owner)
}

func (x *Index) ownedBy(owner types.UID) []apply.State {
	owned := make([]apply.State, 0, len(x.byOwner[owner]))
	for key := range x.byOwner[owner] {
		if s := x.objects[key]; s.Ours {
			owned = append(owned, s)
		}
	}
	return owned
}

// Put tells the index what this process has just applied.
func (x *Index) Put(s apply.State) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.departures.followed(s) {
		x.put(s)
	}
}

// Remove tells the index that this process has just deleted an object. One that
// a watch has already shown on its way out may have finalizers, and stays until
// the watch tells that it is gone.
func (x *Index) Remove(s apply.State) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if known, ok := x.objects[s.Key]; ok && known.UID == s.UID {
		x.removed[s.Key] = s.UID
		if !known.Deleting {
			x.drop(s.Key)
		}
	}
}

// observe takes what a watch says, unless something newer is known.
func (x *Index) observe(s apply.State, health *Health) {
	x.mu.Lock()
	stale := x.removed[s.Key] == s.UID && !s.Deleting || !x.put(s)
	owner, damaged := x.damaged(s.Key)
	other := health != nil && x.putHealth(s, *health)
	x.mu.Unlock()
	if !stale && damaged {
		x.drifted(owner)
	}
	if other {
		x.changed(s.Owner)
	}
}

// putHealth stores the health of an object, unless a newer state of it is
// known, and tells whether it is another.
func (x *Index) putHealth(s apply.State, health Health) bool {
	known, ok := x.objects[s.Key]
	if !ok || known.UID != s.UID || newer(known.ResourceVersion, s.ResourceVersion) {
		return false
	}
	was, seen := x.health[s.Key]
	x.health[s.Key] = health
	return !seen || was != health
}

// gone takes a watch's word that an object was deleted, or that it lost the
// label by which it was watched. Unless certain, the word may be older than
// our own last write, which brought the label back.
func (x *Index) gone(s apply.State, certain bool) {
	x.mu.Lock()
	if x.removed[s.Key] == s.UID {
		delete(x.removed, s.Key)
	}
	x.departures.add(s.Key, s.ResourceVersion)
	known, ok := x.objects[s.Key]
	if ok && known.UID == s.UID && (certain || !older(s.ResourceVersion, known.ResourceVersion)) {
		x.drop(s.Key)
	}
	owner, damaged := x.damaged(s.Key)
	x.mu.Unlock()
	if damaged {
		x.drifted(owner)
	}
}

// purge drops what is known of objects of a kind that is no longer watched.
func (x *Index) purge(gk schema.GroupKind) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for key := range x.objects {
		if key.GroupKind() == gk {
			x.drop(key)
		}
	}
}

// damaged tells whether an object is not what its owner's release expects.
func (x *Index) damaged(key apply.Key) (types.UID, bool) {
	owner, ok := x.expectedBy[key]
	if !ok {
		return "", false
	}
	_, drift := x.compare(x.expected[owner][key])
	return owner, drift
}

func (x *Index) put(s apply.State) bool {
	if old, ok := x.objects[s.Key]; ok {
		// The versions of one name's objects grow from one to its successor, too.
		if !newer(s.ResourceVersion, old.ResourceVersion) {
			return false
		}
		health, seen := x.health[s.Key]
		x.drop(s.Key)
		if seen && old.UID == s.UID && old.Generation == s.Generation {
			x.health[s.Key] = health
		}
	}
	if x.removed[s.Key] != s.UID {
		// A successor is there, so its predecessor is gone.
		delete(x.removed, s.Key)
	}
	x.objects[s.Key] = s
	if s.Owner != "" {
		if x.byOwner[s.Owner] == nil {
			x.byOwner[s.Owner] = map[apply.Key]struct{}{}
		}
		x.byOwner[s.Owner][s.Key] = struct{}{}
	}
	return true
}

func (x *Index) drop(key apply.Key) {
	owner := x.objects[key].Owner
	delete(x.objects, key)
	delete(x.health, key)
	delete(x.byOwner[owner], key)
	if len(x.byOwner[owner]) == 0 {
		delete(x.byOwner, owner)
	}
}

// newer compares resource versions, which are numbers that grow. One that is
// no number counts as newer, so that no event is lost.
func newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || order > 0
}

// older is no opposite of newer: a version that is no number is neither.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}
