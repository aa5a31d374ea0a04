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

// Index holds the newest known state of every managed object, and the state that its
// owner expects. Use NewIndex to create it. Its methods may be called concurrently.
//
// The Index shares memory with the caches, which hold several objects of each release.
// Therefore a stored state is never modified.
type Index struct {
	// HealthConfig must be set, if at all, before the index is used.
	HealthConfig HealthConfig

	mu      sync.RWMutex
	objects map[apply.Key]*entry
	owners  map[types.UID]*owner

	// reporting are the kinds with at least one object on which a controller has reported.
	reporting map[schema.GroupKind]bool

	// tombstones holds the last version of recently deleted objects, by apply.Key.
	tombstones *lru.Cache
	// forgotten holds the UIDs of owners that were forgotten recently. What is reported of
	// their Jobs later must not create an owner again.
	forgotten *lru.Cache
	// unwatched are the kinds whose objects cannot be watched, with the namespaces
	// concerned. "" means all namespaces.
	unwatched map[schema.GroupKind][]string

	// onDrift is called for owners of objects that have drifted, onChange for owners of
	// objects whose health has changed, and of objects of kinds that the owner follows.
	onDrift  func(owner types.UID)
	onChange func(owner types.UID)
}

// entry holds the state of the objects with one key. It exists as long as it is not empty.
type entry struct {
	// live is the existing object, or nil.
	live *apply.State
	// health is nil if the kind has no health, or until the watch delivers the object
	// after a change of its spec.
	health *Health
	// expected is the state that the release of the owner expects, or nil. The owner
	// is stored because the object and its owner label may be deleted.
	expected *apply.State
	owner    types.UID
	// removed is the UID of an object that this process deleted, until the watch
	// reports the deletion.
	removed types.UID
}

// owner holds the objects of one owner.
type owner struct {
	// live are the objects with the UID of the owner in their label.
	live []*apply.State
	// expected are the objects that the release expects, in no particular order. It is
	// valid only if known is true.
	expected []apply.Key
	known    bool
	// finished are the finished Jobs that have ttlSecondsAfterFinished.
	finished map[apply.Key]finished
	// namespace is the namespace of the release, or "" if it is not known. named holds
	// the objects outside this namespace that belong to the release and are not in
	// expected.
	namespace string
	named     map[apply.Key]bool
	// followed are the kinds whose changes are all reported to the owner.
	followed []schema.GroupKind
}

// NewIndex returns an empty index. It calls drifted when an object of an owner has
// drifted, and changed when the health of an object of an owner has changed, see also
// Follow. No lock is held during these calls.
func NewIndex(drifted, changed func(owner types.UID)) *Index {
	return &Index{
		objects: map[apply.Key]*entry{}, owners: map[types.UID]*owner{}, reporting: map[schema.GroupKind]bool{},
		tombstones: lru.New(maxTombstones), forgotten: lru.New(maxTombstones), unwatched: map[schema.GroupKind][]string{},
		onDrift: drifted, onChange: changed,
	}
}

// Get returns the live state of an object.
func (x *Index) Get(key apply.Key) (apply.State, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if live := x.live(key); live != nil {
		return *live, true
	}
	return apply.State{}, false
}

// live returns the live state of an object, or nil.
func (x *Index) live(key apply.Key) *apply.State {
	if o := x.objects[key]; o != nil {
		return o.live
	}
	return nil
}

// OwnedBy returns the objects that count for an owner: they carry its label and an Apply
// entry of the operator's field manager, and are in the namespace of the release or
// recorded as objects of the release.
func (x *Index) OwnedBy(owner types.UID) []apply.State {
	x.mu.RLock()
	defer x.mu.RUnlock()
	owned, _ := x.labeled(owner)
	return owned
}

// labeled returns the objects that carry the label of an owner and an Apply entry of the
// operator's field manager. Those that count for the owner are owned, the others claimed.
func (x *Index) labeled(uid types.UID) (owned, claimed []apply.State) {
	info := x.known(uid)
	owned = make([]apply.State, 0, len(info.live))
	for _, s := range info.live {
		switch {
		case x.isOwned(info, s):
			owned = append(owned, *s)
		case s.Managed:
			claimed = append(claimed, *s)
		}
	}
	return owned, claimed
}

// Put stores the state of an object that this process has just applied.
func (x *Index) Put(s apply.State) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.deletedSince(s) || !x.put(&s) {
		return
	}
	if !s.Deleting {
		x.objects[s.Key].removed = ""
	}
	if s.Managed && s.Owner != "" {
		x.owner(s.Owner).addObject(s.Key)
	}
}

// Observe stores the state of an object that was read from the API server. It is for
// processes without watches.
func (x *Index) Observe(s apply.State) { x.observe(&s, nil) }

// Remove removes an object that this process has just deleted. If the watch has already
// reported a deletion timestamp, the object may have finalizers: it stays in the index
// until the watch reports its deletion. Its health is kept: if an object stays that must not be
// changed, and is applied again, no watch delivers it again.
func (x *Index) Remove(s apply.State) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if o := x.objects[s.Key]; o != nil && o.live != nil && o.live.UID == s.UID {
		o.removed = s.UID
		if !o.live.Deleting {
			x.detach(o.live)
			o.live = nil
		}
	}
}

// observe stores a state that a watch delivered, unless the index has a newer one.
func (x *Index) observe(s *apply.State, health *Health) {
	x.mu.Lock()
	o := x.objects[s.Key]
	protectionChanged := o != nil && o.live != nil && protectionChanged(o.live, s)
	followed := x.isFollowed(s)
	stale := o != nil && o.removed == s.UID && !s.Deleting || !x.put(s)
	if stale {
		x.shareState(s)
	}
	owner, drifted := x.ownerOfDrifted(s.Key)
	healthChanged := health != nil && x.putHealth(s, health) && x.concernsOwner(s)
	var waiting []types.UID
	if health != nil && health.Reported {
		waiting = x.report(s.GroupKind())
	}
	x.mu.Unlock()
	if !stale && drifted {
		x.onDrift(owner)
	}
	if healthChanged || !stale && (protectionChanged || followed) {
		x.onChange(s.Owner)
	}
	for _, owner := range waiting {
		x.onChange(owner)
	}
}

// protectionChanged reports whether an action that waits because of an object may
// continue.
func protectionChanged(before, now *apply.State) bool {
	return before.Protected != now.Protected || before.Kept != now.Kept || before.Protected && before.Deleting != now.Deleting
}

// shareState replaces a stored state by an equal one that a cache holds, so that both
// share memory. This happens after each write of this process.
func (x *Index) shareState(s *apply.State) {
	o := x.objects[s.Key]
	if o == nil {
		return
	}
	if o.live != nil && *o.live == *s {
		if info := x.owners[s.Owner]; info != nil {
			info.live[slices.Index(info.live, o.live)] = s
		}
		o.live = s
	}
	if o.expected != nil && *o.expected == *s {
		o.expected = s
	}
}

// putHealth stores the health of an object, unless a newer state of the object is known.
// It reports whether the health has changed.
func (x *Index) putHealth(s *apply.State, health *Health) bool {
	o := x.objects[s.Key]
	if o != nil && o.live == nil && o.removed == s.UID {
		o.health = health
		return false
	}
	if o == nil || o.live == nil || o.live.UID != s.UID || api.IsNewer(o.live.ResourceVersion, s.ResourceVersion) {
		return false
	}
	was := o.health
	o.health = health
	return was == nil || *was != *health
}

// observeDeletion handles a watch event for an object that was deleted or lost its label. If certain
// is false, the event may be older than the last apply of this process, which restored
// the label.
func (x *Index) observeDeletion(s *apply.State, certain bool) {
	x.mu.Lock()
	x.tombstones.Add(s.Key, s.ResourceVersion)
	protected, followed := false, x.isFollowed(s)
	if o := x.objects[s.Key]; o != nil {
		if o.removed == s.UID {
			o.removed, o.health = "", nil
		}
		protected = o.live != nil && o.live.Protected
		if o.live != nil && o.live.UID == s.UID && (certain || !older(s.ResourceVersion, o.live.ResourceVersion)) {
			x.drop(s.Key, o)
		}
		x.removeIfEmpty(s.Key, o)
	}
	owner, drifted := x.ownerOfDrifted(s.Key)
	x.mu.Unlock()
	if drifted {
		x.onDrift(owner)
	}
	if protected || followed {
		x.onChange(s.Owner)
	}
}

// purge drops all objects of a kind that is no longer watched.
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

// ownerOfDrifted returns the owner that expects an object, and reports whether the object
// has drifted.
func (x *Index) ownerOfDrifted(key apply.Key) (types.UID, bool) {
	o := x.objects[key]
	if o == nil || o.expected == nil {
		return "", false
	}
	_, drift := x.compare(o.expected)
	return o.owner, drift
}

func (x *Index) put(s *apply.State) bool {
	o := x.objects[s.Key]
	if o == nil {
		o = &entry{}
		x.objects[s.Key] = o
	}
	if old := o.live; old != nil {
		// Resource versions also increase from a deleted object to its successor.
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
	if o.removed != "" && o.removed != s.UID {
		// A successor exists, so the removed object no longer does.
		o.removed, o.health = "", nil
	}
	o.live = s
	if s.Owner != "" {
		info := x.owner(s.Owner)
		info.live = append(info.live, s)
	}
	return true
}

// drop drops the live state of an object.
func (x *Index) drop(key apply.Key, o *entry) {
	if o.live != nil {
		x.detach(o.live)
	}
	o.live, o.health = nil, nil
	x.removeIfEmpty(key, o)
}

// removeIfEmpty deletes an empty entry.
func (x *Index) removeIfEmpty(key apply.Key, o *entry) {
	if o.live == nil && o.expected == nil && o.removed == "" {
		delete(x.objects, key)
	}
}

// known returns the record of an owner for reading only.
func (x *Index) known(uid types.UID) *owner { return cmp.Or(x.owners[uid], &unknownOwner) }

var unknownOwner owner

// owner returns the record of an owner, and creates it if necessary.
func (x *Index) owner(uid types.UID) *owner {
	info := x.owners[uid]
	if info == nil {
		info = &owner{}
		x.owners[uid] = info
	}
	return info
}

// detach removes an object from the record of its owner.
func (x *Index) detach(s *apply.State) {
	info := x.owners[s.Owner]
	if info == nil {
		return
	}
	info.live = slices.DeleteFunc(info.live, func(held *apply.State) bool { return held == s })
	x.removeOwnerIfEmpty(s.Owner, info)
}

// removeOwnerIfEmpty deletes an empty record of an owner.
func (x *Index) removeOwnerIfEmpty(uid types.UID, info *owner) {
	if len(info.live) == 0 && !info.known && len(info.finished) == 0 && info.namespace == "" && len(info.named) == 0 && len(info.followed) == 0 {
		delete(x.owners, uid)
	}
}

// older reports whether version a is older than b. It is false if one of them is not a number.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// maxTombstones limits the deleted objects whose last version the index holds, and the owners
// that it knows to be forgotten.
const maxTombstones = 1024

// deletedSince reports whether an object was deleted at the given version or a newer one.
// A watch may report the deletion before this process receives the response to its own
// apply. Without this check, the object would stay in the index forever.
func (x *Index) deletedSince(s apply.State) bool {
	found, _ := x.tombstones.Get(s.Key)
	version, known := found.(string)
	return known && !api.IsNewer(s.ResourceVersion, version)
}
