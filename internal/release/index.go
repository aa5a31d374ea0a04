package release

import (
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	"github.com/chartwright/chartwright/internal/api"
)

// Index holds the newest known state of every release record. The zero Index
// is not usable; call NewIndex. Its methods may be called concurrently.
//
// There is a record for each revision of each release, so that it is what the
// operator holds the most of: the informer's store and the maps here share it.
// A Record that is held is never changed.
type Index struct {
	mu      sync.RWMutex
	records map[types.NamespacedName]*Record
	// byRelease, byOwner and byController hold the records in no order; the last
	// those alone that no operator of ours has written.
	byRelease    map[types.NamespacedName][]*Record
	byOwner      map[types.UID][]*Record
	byController map[types.UID][]*Record
	// removed holds the records that this process deleted and the watch has
	// not seen go yet, by the Secret's name.
	removed map[types.NamespacedName]*Record
	// changed is told of records that somebody else changed.
	changed func(Record)
}

// NewIndex returns an empty index. The function changed is called, outside any
// lock, for every change that did not come from this process.
func NewIndex(changed func(Record)) *Index {
	return &Index{
		records:      map[types.NamespacedName]*Record{},
		byRelease:    map[types.NamespacedName][]*Record{},
		byOwner:      map[types.UID][]*Record{},
		byController: map[types.UID][]*Record{},
		removed:      map[types.NamespacedName]*Record{},
		changed:      changed,
	}
}

// Get returns the record that a Secret holds.
func (x *Index) Get(namespace, secret string) (Record, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if r := x.records[types.NamespacedName{Namespace: namespace, Name: secret}]; r != nil {
		return *r, true
	}
	return Record{}, false
}

// History returns the records of a release, newest revision first.
func (x *Index) History(namespace, release string) []Record {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return collect(x.byRelease[types.NamespacedName{Namespace: namespace, Name: release}])
}

// Releases returns the names of the releases that are stored in a namespace.
// The caller may change the map.
func (x *Index) Releases(namespace string) sets.Set[string] {
	x.mu.RLock()
	defer x.mu.RUnlock()
	names := sets.New[string]()
	for release := range x.byRelease {
		if release.Namespace == namespace {
			names.Insert(release.Name)
		}
	}
	return names
}

// OwnedBy returns the records of a custom resource, newest revision first.
func (x *Index) OwnedBy(uid types.UID) []Record {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return collect(x.byOwner[uid])
}

// ControlledBy returns the records that the operator-sdk has made for a custom
// resource, and that nobody has taken over, newest revision first.
func (x *Index) ControlledBy(uid types.UID) []Record {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return collect(x.byController[uid])
}

// Deployed returns the deployed revisions that an operator has made.
func (x *Index) Deployed(operator string) []Record {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var found []Record
	for _, r := range x.records {
		if r.Operator == operator && r.Status == api.StatusDeployed {
			found = append(found, *r)
		}
	}
	return found
}

func collect(held []*Record) []Record {
	found := make([]Record, len(held))
	for i, r := range held {
		found[i] = *r
	}
	slices.SortFunc(found, func(a, b Record) int { return b.Revision - a.Revision })
	return found
}

// Put tells the index what this process has just stored.
func (x *Index) Put(r Record) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.put(&r)
}

// Remove tells the index that this process has just deleted a record.
func (x *Index) Remove(r Record) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if known, ok := x.records[r.name()]; ok && known.UID == r.UID {
		x.removed[r.name()] = known
		x.drop(known)
	}
}

// observe takes what the watch says, unless something newer is known.
func (x *Index) observe(r *Record) {
	x.mu.Lock()
	removed, wasRemoved := x.removed[r.name()]
	// What had the name before the removed one is older than it.
	stale := wasRemoved && (removed.UID == r.UID || !api.IsNewer(r.ResourceVersion, removed.ResourceVersion)) || !x.put(r)
	if known := x.records[r.name()]; stale && known != nil && known.ResourceVersion == r.ResourceVersion && !r.Stripped() {
		// This process wrote it. One copy is enough. The held copy of a stripped
		// record says more, see put.
		x.drop(known)
		x.hold(r)
	}
	x.mu.Unlock()
	if !stale {
		x.changed(*r)
	}
}

// gone takes the watch's word that a record was deleted.
func (x *Index) gone(r *Record) {
	x.mu.Lock()
	if removed, ok := x.removed[r.name()]; ok && removed.UID == r.UID {
		delete(x.removed, r.name())
	}
	known, ok := x.records[r.name()]
	ok = ok && known.UID == r.UID
	if ok {
		x.drop(known)
	}
	x.mu.Unlock()
	if ok {
		x.changed(*r)
	}
}

// put stores a record and tells whether it is news.
func (x *Index) put(r *Record) bool {
	if old, ok := x.records[r.name()]; ok {
		// The versions of one name's Secrets grow from one to its successor, too.
		if !api.IsNewer(r.ResourceVersion, old.ResourceVersion) {
			return false
		}
		x.drop(old)
		if r.Stripped() && r.UID == old.UID && r.Status == old.Status {
			// A Record that is held is never changed, and the store holds this one.
			carried := r.carry(*old)
			r = &carried
		}
	}
	delete(x.removed, r.name())
	x.hold(r)
	return true
}

func (x *Index) hold(r *Record) {
	x.records[r.name()] = r
	x.byRelease[r.release()] = append(x.byRelease[r.release()], r)
	switch {
	case r.OwnerUID != "":
		x.byOwner[r.OwnerUID] = append(x.byOwner[r.OwnerUID], r)
	case r.Controller != "":
		x.byController[r.Controller] = append(x.byController[r.Controller], r)
	}
}

func (x *Index) drop(r *Record) {
	delete(x.records, r.name())
	remove(x.byRelease, r.release(), r)
	remove(x.byOwner, r.OwnerUID, r)
	remove(x.byController, r.Controller, r)
}

func remove[K comparable](from map[K][]*Record, key K, r *Record) {
	left := slices.DeleteFunc(from[key], func(held *Record) bool { return held == r })
	if len(left) == 0 {
		delete(from, key)
		return
	}
	from[key] = left
}

func (r *Record) name() types.NamespacedName {
	return types.NamespacedName{Namespace: r.Namespace, Name: r.Secret}
}

func (r *Record) release() types.NamespacedName {
	return types.NamespacedName{Namespace: r.Namespace, Name: r.Release}
}

// Handler returns the handler that feeds the index from an informer on the
// metadata of release Secrets.
func (x *Index) Handler() cache.ResourceEventHandler {
	observe := func(object any) {
		if r := read(object); r != nil {
			x.observe(r)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    observe,
		UpdateFunc: func(_, object any) { observe(object) },
		DeleteFunc: func(object any) {
			if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			if r := read(object); r != nil {
				x.gone(r)
			}
		},
	}
}

// held is what the informer's store holds: the record that the Index holds, too.
type held struct{ record *Record }

// GetObjectMeta returns what the store itself reads.
func (h held) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{
		Namespace: h.record.Namespace, Name: h.record.Secret, UID: h.record.UID, ResourceVersion: h.record.ResourceVersion,
	}
}

// Compact is the transform of that informer: the metadata of a Secret is several
// times the record that is read from it. What is no record is left as it is.
func Compact(object any) (any, error) {
	if m, ok := object.(*metav1.PartialObjectMetadata); ok {
		if r, ok := FromMeta(m); ok {
			return held{&r}, nil
		}
	}
	return object, nil
}

// read returns the record that an object of the store, or a Secret's metadata,
// is; nil where it is none.
func read(object any) *Record {
	switch o := object.(type) {
	case held:
		return o.record
	case metav1.Object:
		if r, ok := FromMeta(o); ok {
			return &r
		}
	}
	return nil
}
