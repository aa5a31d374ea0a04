package inventory

import (
	"cmp"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/lru"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
)

// Index holds the newest known state of every dependent, and what is expected
// of them. Call NewIndex. Its methods may be called concurrently.
//
// It holds several objects of each release, so that what the caches hold of
// them is shared. A state that is held is never changed.
type Index struct {
	// HealthConfig is set before the index is used, if at all.
	HealthConfig HealthConfig

	mu      sync.RWMutex
	objects map[apply.Key]*entry
	owners  map[types.UID]*owner

	// reporting are the kinds of which some object has a report of its controller.
	reporting map[schema.GroupKind]bool

	// tombstones are the versions of the objects that were deleted last, by apply.Key.
	tombstones *lru.Cache
	// unwatched are the kinds whose objects cannot be watched, with the namespaces
	// in which they cannot.
	unwatched map[schema.GroupKind][]string

	// onDrift is told of owners whose objects are not what is expected, and
	// changed of those of which an object's health has changed.
	onDrift  func(owner types.UID)
	onChange func(owner types.UID)
}

// entry is what is known of one name. There is one as long as anything is.
type entry struct {
	// live is the object that has the name, nil where there is none.
	live *apply.State
	// health is of an object that has one and was seen since its spec last
	// changed.
	health *Health
	// expected is what by's release expects, nil where none does. An owner is
	// found by it when its object is gone, or the object's owner label is.
	expected *apply.State
	by       types.UID
	// removed is the UID of an object that this process deleted and the watch
	// has not seen go yet.
	removed types.UID
}

// owner is what is known of the objects of one owner.
type owner struct {
	// live are those with its UID in their owner label.
	live []*apply.State
	// expected are those that its release expects, in no order. None are, and
	// known is false, where nobody knows.
	expected []apply.Key
	known    bool
	// finished are the Jobs that have finished and have ttlSecondsAfterFinished.
	finished map[apply.Key]finished
	// namespace is that of the release, empty if it is not known. named holds the
	// objects outside of it that the release is known to have, beside those that it
	// expects.
	namespace string
	named     map[apply.Key]bool
}

// NewIndex returns an empty index. The functions are called outside any lock:
// drifted when an object of an owner is not, or no longer, what is expected,
// and changed when an object of an owner has become ready, or is so no more.
func NewIndex(drifted, changed func(owner types.UID)) *Index {
	return &Index{
		objects: map[apply.Key]*entry{}, owners: map[types.UID]*owner{}, reporting: map[schema.GroupKind]bool{},
		tombstones: lru.New(maxTombstones), unwatched: map[schema.GroupKind][]string{},
		onDrift: drifted, onChange: changed,
	}
}

// Get returns the state of one object.
func (x *Index) Get(key apply.Key) (apply.State, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if live := x.live(key); live != nil {
		return *live, true
	}
	return apply.State{}, false
}

// live returns the object with a key, nil if none exists.
func (x *Index) live(key apply.Key) *apply.State {
	if o := x.objects[key]; o != nil {
		return o.live
	}
	return nil
}

// OwnedBy returns the objects that count for an owner: they carry its label and an
// Apply entry of our field manager, and are in the namespace of the release or
// known to be objects of the release.
func (x *Index) OwnedBy(owner types.UID) []apply.State {
	x.mu.RLock()
	defer x.mu.RUnlock()
	owned, _ := x.labeled(owner)
	return owned
}

// labeled returns the objects that carry the label of an owner and an Apply entry of
// our field manager: those that count for the owner, and those that do not.
func (x *Index) labeled(uid types.UID) (owned, claimed []apply.State) {
	of := x.known(uid)
	owned = make([]apply.State, 0, len(of.live))
	for _, s := range of.live {
		switch {
		case x.isOwned(of, s):
			owned = append(owned, *s)
		case s.Managed:
			claimed = append(claimed, *s)
		}
	}
	return owned, claimed
}

// Put tells the index what this process has just applied.
func (x *Index) Put(s apply.State) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.deletedSince(s) && x.put(&s) && s.Managed && s.Owner != "" {
		x.owner(s.Owner).addObject(s.Key)
	}
}

// Remove tells the index that this process has just deleted an object. One that
// a watch has already shown on its way out may have finalizers, and stays until
// the watch tells that it is gone.
func (x *Index) Remove(s apply.State) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if o := x.objects[s.Key]; o != nil && o.live != nil && o.live.UID == s.UID {
		o.removed = s.UID
		if !o.live.Deleting {
			x.drop(s.Key, o)
		}
	}
}

// observe takes what a watch says, unless something newer is known.
func (x *Index) observe(s *apply.State, health *Health) {
	x.mu.Lock()
	o := x.objects[s.Key]
	stale := o != nil && o.removed == s.UID && !s.Deleting || !x.put(s)
	if stale {
		x.shareState(s)
	}
	owner, damaged := x.ownerOfDrifted(s.Key)
	other := health != nil && x.putHealth(s, health) && x.concernsOwner(s)
	var waiting []types.UID
	if health != nil && health.Reported {
		waiting = x.report(s.GroupKind())
	}
	x.mu.Unlock()
	if !stale && damaged {
		x.onDrift(owner)
	}
	if other {
		x.onChange(s.Owner)
	}
	for _, owner := range waiting {
		x.onChange(owner)
	}
}

// shareState takes the copy of a state that a cache holds, where there is another of
// the very same: this process wrote it, and has told so first.
func (x *Index) shareState(s *apply.State) {
	o := x.objects[s.Key]
	if o == nil {
		return
	}
	if o.live != nil && *o.live == *s {
		if of := x.owners[s.Owner]; of != nil {
			of.live[slices.Index(of.live, o.live)] = s
		}
		o.live = s
	}
	if o.expected != nil && *o.expected == *s {
		o.expected = s
	}
}

// putHealth stores the health of an object, unless a newer state of it is
// known, and tells whether it is another.
func (x *Index) putHealth(s *apply.State, health *Health) bool {
	o := x.objects[s.Key]
	if o == nil || o.live == nil || o.live.UID != s.UID || api.IsNewer(o.live.ResourceVersion, s.ResourceVersion) {
		return false
	}
	was := o.health
	o.health = health
	return was == nil || *was != *health
}

// gone takes a watch's word that an object was deleted, or that it lost the
// label by which it was watched. Unless certain, the word may be older than
// our own last write, which brought the label back.
func (x *Index) gone(s *apply.State, certain bool) {
	x.mu.Lock()
	x.tombstones.Add(s.Key, s.ResourceVersion)
	if o := x.objects[s.Key]; o != nil {
		if o.removed == s.UID {
			o.removed = ""
		}
		if o.live != nil && o.live.UID == s.UID && (certain || !older(s.ResourceVersion, o.live.ResourceVersion)) {
			x.drop(s.Key, o)
		}
		x.removeIfEmpty(s.Key, o)
	}
	owner, damaged := x.ownerOfDrifted(s.Key)
	x.mu.Unlock()
	if damaged {
		x.onDrift(owner)
	}
}

// purge drops what is known of objects of a kind that is no longer watched.
func (x *Index) purge(gk schema.GroupKind) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.reporting, gk)
	for key, o := range x.objects {
		if key.GroupKind() == gk {
			x.drop(key, o)
		}
	}
}

// ownerOfDrifted reports whether an object is not what its owner's release expects.
func (x *Index) ownerOfDrifted(key apply.Key) (types.UID, bool) {
	o := x.objects[key]
	if o == nil || o.expected == nil {
		return "", false
	}
	_, drift := x.compare(o.expected)
	return o.by, drift
}

func (x *Index) put(s *apply.State) bool {
	o := x.objects[s.Key]
	if o == nil {
		o = &entry{}
		x.objects[s.Key] = o
	}
	if old := o.live; old != nil {
		// The versions of one name's objects grow from one to its successor, too.
		if !api.IsNewer(s.ResourceVersion, old.ResourceVersion) {
			return false
		}
		health := o.health
		x.detach(old)
		o.live, o.health = nil, nil
		if old.UID == s.UID && old.Generation == s.Generation {
			o.health = health
		}
	}
	if o.removed != s.UID {
		// A successor is there, so its predecessor is gone.
		o.removed = ""
	}
	o.live = s
	if s.Owner != "" {
		of := x.owner(s.Owner)
		of.live = append(of.live, s)
	}
	return true
}

// drop forgets the object that has a name.
func (x *Index) drop(key apply.Key, o *entry) {
	if o.live != nil {
		x.detach(o.live)
	}
	o.live, o.health = nil, nil
	x.removeIfEmpty(key, o)
}

// removeIfEmpty forgets a name of which nothing is known.
func (x *Index) removeIfEmpty(key apply.Key, o *entry) {
	if o.live == nil && o.expected == nil && o.removed == "" {
		delete(x.objects, key)
	}
}

// known returns what is known of an owner, which must not be changed.
func (x *Index) known(uid types.UID) *owner { return cmp.Or(x.owners[uid], &unknownOwner) }

var unknownOwner owner

// owner returns what is known of an owner, to be added to.
func (x *Index) owner(uid types.UID) *owner {
	of := x.owners[uid]
	if of == nil {
		of = &owner{}
		x.owners[uid] = of
	}
	return of
}

// detach takes an object from its owner's.
func (x *Index) detach(s *apply.State) {
	of := x.owners[s.Owner]
	if of == nil {
		return
	}
	of.live = slices.DeleteFunc(of.live, func(held *apply.State) bool { return held == s })
	x.removeOwnerIfEmpty(s.Owner, of)
}

// removeOwnerIfEmpty forgets an owner of which nothing is known.
func (x *Index) removeOwnerIfEmpty(uid types.UID, of *owner) {
	if len(of.live) == 0 && !of.known && len(of.finished) == 0 && of.namespace == "" && len(of.named) == 0 {
		delete(x.owners, uid)
	}
}

// older is no opposite of newer: a version that is no number is neither.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// maxTombstones is the number of deleted objects whose last version the index knows.
const maxTombstones = 1024

// deletedSince reports whether an object was deleted at this version of it or a newer one.
// A watch may report a deletion before this process receives the response to its
// own apply. Without this check, the object would stay in the index for ever.
func (x *Index) deletedSince(s apply.State) bool {
	found, _ := x.tombstones.Get(s.Key)
	version, known := found.(string)
	return known && !api.IsNewer(s.ResourceVersion, version)
}
