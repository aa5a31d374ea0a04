package release

import (
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	"github.com/chartwright/chartwright/internal/api"
)

// Index holds the newest known state of every release record. Create it with NewIndex.
// Its methods may be called concurrently.
//
// Records are the largest number of objects in memory: there is one for each revision
// of each release. The informer's store and the maps of the Index therefore share them,
// and a stored Record is never changed.
type Index struct {
	mu      sync.RWMutex
	records map[types.NamespacedName]*Record
	// byRelease, byOwner and byController hold unsorted records. byController holds only
	// records that no Chartwright operator wrote.
	byRelease    map[types.NamespacedName][]*Record
	byOwner      map[types.UID][]*Record
	byController map[types.UID][]*Record
	// removed holds the records that this process deleted, until the watch reports the
	// deletion, by the name of the Secret.
	removed map[types.NamespacedName]*Record
	// changed is called with records that another process changed.
	changed func(Record)
}

// NewIndex returns an empty Index. It calls changed, without holding a lock, for each
// change by another process.
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

// Get returns the record of a Secret.
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

// Releases returns the names of the releases in a namespace. The caller may change the
// set.
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

// ControlledBy returns the records that the operator-sdk created for a custom resource
// and that have not been adopted, newest revision first.
func (x *Index) ControlledBy(uid types.UID) []Record {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return collect(x.byController[uid])
}

// Deployed returns the deployed revisions of an operator.
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

// OwnerKinds returns the kinds of the custom resources in the records of an operator,
// whatever the status of the releases, each with the namespaces of the records. A kind is
// "<kind>.<group>".
func (x *Index) OwnerKinds(operator string) map[string]sets.Set[string] {
	x.mu.RLock()
	defer x.mu.RUnlock()
	found := map[string]sets.Set[string]{}
	for _, r := range x.records {
		kind, _, _ := strings.Cut(r.Owner, "/")
		if r.Operator != operator || kind == "" {
			continue
		}
		if found[kind] == nil {
			found[kind] = sets.New[string]()
		}
		found[kind].Insert(r.Namespace)
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

// Put updates the index with a record that this process has just written.
func (x *Index) Put(r Record) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.put(&r)
}

// Remove removes a record that this process has just deleted.
func (x *Index) Remove(r Record) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if known, ok := x.records[r.name()]; ok && known.UID == r.UID {
		x.removed[r.name()] = known
		x.drop(known)
	}
}

// observe updates the index with a record from the watch, unless the index holds a
// newer state.
func (x *Index) observe(r *Record) {
	x.mu.Lock()
	removed, wasRemoved := x.removed[r.name()]
	// A record that had the name before the removed one is older.
	stale := wasRemoved && (removed.UID == r.UID || !api.IsNewer(r.ResourceVersion, removed.ResourceVersion)) || !x.put(r)
	if known := x.records[r.name()]; stale && known != nil && known.ResourceVersion == r.ResourceVersion && !r.Stripped() {
		// This process wrote the record. Only one copy is needed. For a stripped record,
		// the stored copy has more fields; see put.
		x.drop(known)
		x.insert(r)
	}
	x.mu.Unlock()
	if !stale {
		x.changed(*r)
	}
}

// observeDeleted removes a record that was deleted according to the watch.
func (x *Index) observeDeleted(r *Record) {
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

// put stores a record. It returns false if the index holds the same or a newer state.
func (x *Index) put(r *Record) bool {
	if old, ok := x.records[r.name()]; ok {
		// A new Secret of the same name has a newer resourceVersion, too.
		if !api.IsNewer(r.ResourceVersion, old.ResourceVersion) {
			return false
		}
		x.drop(old)
		if r.Stripped() && r.UID == old.UID && r.Status == old.Status {
			// A stored Record is never changed, and the informer's store shares this one.
			carried := r.withAnnotationsOf(*old)
			r = &carried
		}
	}
	delete(x.removed, r.name())
	x.insert(r)
	return true
}

func (x *Index) insert(r *Record) {
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

// Handler returns the handler that updates the index from an informer on the metadata
// of release Secrets.
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
				x.observeDeleted(r)
			}
		},
	}
}

// storeItem is an item of the informer's store. It shares the record with the Index.
type storeItem struct{ record *Record }

// GetObjectMeta returns the metadata that the store reads.
func (h storeItem) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{
		Namespace: h.record.Namespace, Name: h.record.Secret, UID: h.record.UID, ResourceVersion: h.record.ResourceVersion,
	}
}

// Compact is the transform function of the informer. It replaces the metadata of a
// Secret by the record, which takes a fraction of the memory. Of a Secret that is no record
// it keeps the identity, because everyone with write access to Secrets can write the rest.
func Compact(object any) (any, error) {
	m, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	if r, ok := FromMeta(m); ok {
		return storeItem{&r}, nil
	}
	return api.Identity(m), nil
}

// read returns the record of an item of the store or of a Secret's metadata, or nil.
func read(object any) *Record {
	switch o := object.(type) {
	case storeItem:
		return o.record
	case metav1.Object:
		if r, ok := FromMeta(o); ok {
			return &r
		}
	}
	return nil
}
