package records

import (
	"sort"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/chartwright/chartwright/internal/api"
)

// Index holds the newest known state of every release record. The zero Index
// is not usable; call NewIndex. Its methods may be called concurrently.
type Index struct {
	mu      sync.RWMutex
	records map[types.NamespacedName]Record
	// byRelease, byOwner and byController hold the names of Secrets; the last
	// those alone that no operator of ours has written.
	byRelease    map[types.NamespacedName]set
	byOwner      map[types.UID]set
	byController map[types.UID]set
	// removed holds the records that this process deleted and the watch has
	// not seen go yet, by the Secret's name.
	removed map[types.NamespacedName]Record
	// changed is told of records that somebody else changed.
	changed func(Record)
}

type set map[types.NamespacedName]struct{}

// NewIndex returns an empty index. The function changed is called, outside any
// lock, for every change that did not come from this process.
func NewIndex(changed func(Record)) *Index {
	return &Index{
		records:      map[types.NamespacedName]Record{},
		byRelease:    map[types.NamespacedName]set{},
		byOwner:      map[types.UID]set{},
		byController: map[types.UID]set{},
		removed:      map[types.NamespacedName]Record{},
		changed:      changed,
	}
}

// History returns the records of a release, newest revision first.
func (x *Index) History(namespace, release string) []Record {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.collect(x.byRelease[types.NamespacedName{Namespace: namespace, Name: release}])
}

// Releases returns the names of the releases that are stored in a namespace.
// The caller may change the map.
func (x *Index) Releases(namespace string) map[string]struct{} {
	x.mu.RLock()
	defer x.mu.RUnlock()
	names := map[string]struct{}{}
	for release := range x.byRelease {
		if release.Namespace == namespace {
			names[release.Name] = struct{}{}
		}
	}
	return names
}

// OwnedBy returns the records of a custom resource, newest revision first.
func (x *Index) OwnedBy(uid types.UID) []Record {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.collect(x.byOwner[uid])
}

// ControlledBy returns the records that the operator-sdk has made for a custom
// resource, and that nobody has taken over, newest revision first.
func (x *Index) ControlledBy(uid types.UID) []Record {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.collect(x.byController[uid])
}

// Deployed returns the deployed revisions that an operator has made.
func (x *Index) Deployed(operator string) []Record {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var found []Record
	for _, r := range x.records {
		if r.Operator == operator && r.Status == api.StatusDeployed {
			found = append(found, r)
		}
	}
	return found
}

func (x *Index) collect(names set) []Record {
	found := make([]Record, 0, len(names))
	for name := range names {
		found = append(found, x.records[name])
	}
	sort.Slice(found, func(i, j int) bool { return found[i].Revision > found[j].Revision })
	return found
}

// Put tells the index what this process has just stored.
func (x *Index) Put(r Record) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.put(r)
}

// Remove tells the index that this process has just deleted a record.
func (x *Index) Remove(r Record) {
	x.mu.Lock()
	defer x.mu.Unlock()
	name := types.NamespacedName{Namespace: r.Namespace, Name: r.Secret}
	if x.records[name].UID == r.UID {
		x.removed[name] = x.records[name]
		x.drop(name)
	}
}

// observe takes what the watch says, unless something newer is known.
func (x *Index) observe(r Record) {
	x.mu.Lock()
	name := types.NamespacedName{Namespace: r.Namespace, Name: r.Secret}
	removed, wasRemoved := x.removed[name]
	// What had the name before the removed one is older than it.
	stale := wasRemoved && (removed.UID == r.UID || !newer(r.ResourceVersion, removed.ResourceVersion)) || !x.put(r)
	x.mu.Unlock()
	if !stale {
		x.changed(r)
	}
}

// gone takes the watch's word that a record was deleted.
func (x *Index) gone(r Record) {
	x.mu.Lock()
	name := types.NamespacedName{Namespace: r.Namespace, Name: r.Secret}
	if x.removed[name].UID == r.UID {
		delete(x.removed, name)
	}
	known := x.records[name].UID == r.UID
	if known {
		x.drop(name)
	}
	x.mu.Unlock()
	if known {
		x.changed(r)
	}
}

// put stores a record and tells whether it is news.
func (x *Index) put(r Record) bool {
	name := types.NamespacedName{Namespace: r.Namespace, Name: r.Secret}
	if old, ok := x.records[name]; ok {
		// The versions of one name's Secrets grow from one to its successor, too.
		if !newer(r.ResourceVersion, old.ResourceVersion) {
			return false
		}
		x.drop(name)
	}
	delete(x.removed, name)
	x.records[name] = r
	add(x.byRelease, types.NamespacedName{Namespace: r.Namespace, Name: r.Release}, name)
	switch {
	case r.OwnerUID != "":
		add(x.byOwner, r.OwnerUID, name)
	case r.Controller != "":
		add(x.byController, r.Controller, name)
	}
	return true
}

func (x *Index) drop(name types.NamespacedName) {
	r := x.records[name]
	delete(x.records, name)
	remove(x.byRelease, types.NamespacedName{Namespace: r.Namespace, Name: r.Release}, name)
	remove(x.byOwner, r.OwnerUID, name)
	if r.OwnerUID == "" {
		remove(x.byController, r.Controller, name)
	}
}

func add[K comparable](sets map[K]set, key K, name types.NamespacedName) {
	if sets[key] == nil {
		sets[key] = set{}
	}
	sets[key][name] = struct{}{}
}

func remove[K comparable](sets map[K]set, key K, name types.NamespacedName) {
	delete(sets[key], name)
	if len(sets[key]) == 0 {
		delete(sets, key)
	}
}

// newer compares resource versions, which are numbers that grow. One that is
// no number counts as newer, so that no event is lost.
func newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || order > 0
}
