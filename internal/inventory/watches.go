package inventory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// ErrUnwatched reports kinds whose objects cannot be watched. Drift of these objects is not
// detected, and their health is not known.
var ErrUnwatched = errors.New("objects cannot be watched")

// idleTimeout is how long a watch continues after its last release no longer needs it. A
// release that is uninstalled and installed again does not restart the watch.
const idleTimeout = 10 * time.Minute

// watchStartTimeout is how long an action waits for a watch to start. A watch starts within
// milliseconds, or not at all.
const watchStartTimeout = 3 * time.Second

// Watches holds one watch for each kind of managed resource that a release needs, in each
// namespace that was added. If a kind cannot be watched, all other kinds are watched all
// the same; see unwatched.go.
type Watches struct {
	index *Index
	// mapping returns the resource of a kind, for the version "" in a version that is served
	// now. It may send a request, and no lock is held during the call.
	mapping func(schema.GroupVersionKind) (*meta.RESTMapping, error)
	// MayServe reports, without a request, whether the API server may serve a kind. If
	// not, a kind is looked up only once EnsureWatched needs it. Nil means true for every
	// kind. It must be set before the first use.
	MayServe func(schema.GroupVersionKind) bool
	// after is time.AfterFunc, except in tests.
	after func(time.Duration, func()) *time.Timer

	mu      sync.Mutex
	caches  []namespaceCache
	kinds   map[schema.GroupKind]*watch
	byOwner map[types.UID][]schema.GroupVersionKind
	// last is the newest list of kinds. The releases of one chart have the same kinds and
	// share it.
	last []schema.GroupVersionKind
}

// namespaceCache is the cache of a namespace; "" means all namespaces.
type namespaceCache struct {
	namespace string
	cache     cache.Cache
}

// NewWatches returns an empty set of watches. The function mapping returns the resource of
// a kind, for the version "" in a version that is served now.
func NewWatches(index *Index, mapping func(schema.GroupVersionKind) (*meta.RESTMapping, error)) *Watches {
	return &Watches{
		index:   index,
		mapping: mapping,
		after:   time.AfterFunc,
		kinds:   map[schema.GroupKind]*watch{},
		byOwner: map[types.UID][]schema.GroupVersionKind{},
	}
}

// AddNamespace adds a namespace and starts all watches there; "" means all
// namespaces. The cache must be made with Options and used for nothing else.
// Cluster-scoped objects are watched by the cache of the first namespace.
func (w *Watches) AddNamespace(namespace string, c cache.Cache) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.caches = append(w.caches, namespaceCache{namespace, c})
	for _, watch := range w.kinds {
		go w.start(watch)
	}
}

// EnsureWatched sets the kinds of the objects that the release of an owner has in a
// namespace, and waits until all of them are watched there, at most for a few seconds. The
// error is ErrUnwatched and names the kinds that are not watched; all others are.
func (w *Watches) EnsureWatched(ctx context.Context, owner types.UID, namespace string, kinds []schema.GroupVersionKind) error {
	needed := w.use(owner, kinds, true)
	ctx, cancel := context.WithTimeout(ctx, watchStartTimeout)
	defer cancel()
	var errs []error
	for i, watch := range needed {
		if why := w.wait(ctx, namespace, watch, false); why != "" {
			errs = append(errs, fmt.Errorf("%w: %s: %s", ErrUnwatched, kinds[i].GroupKind(), why))
		}
	}
	return errors.Join(errs...)
}

// WatchMore adds kinds to those of an owner, and starts their watches without waiting.
func (w *Watches) WatchMore(owner types.UID, kinds []schema.GroupVersionKind) {
	w.mu.Lock()
	known := w.byOwner[owner]
	w.mu.Unlock()
	more := slices.DeleteFunc(slices.Clone(kinds), func(gvk schema.GroupVersionKind) bool { return slices.Contains(known, gvk) })
	if len(more) > 0 {
		w.use(owner, slices.Concat(known, more), false)
	}
}

// WaitForSync waits until every watch in a namespace has received all objects or has
// failed; "" means all namespaces.
func (w *Watches) WaitForSync(ctx context.Context, namespace string) {
	w.mu.Lock()
	known := slices.Collect(maps.Values(w.kinds))
	w.mu.Unlock()
	for _, watch := range known {
		w.wait(ctx, namespace, watch, true)
	}
}

// Kinds returns the kinds that EnsureWatched and WatchMore have set for an owner.
func (w *Watches) Kinds(owner types.UID) []schema.GroupVersionKind {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.byOwner[owner]
}

// Counts returns the number of objects in the index for each watched kind.
func (w *Watches) Counts() map[string]int {
	w.mu.Lock()
	counts := make(map[string]int, len(w.kinds))
	for gk, watch := range w.kinds {
		if len(watch.synced) > 0 {
			counts[gk.String()] = 0
		}
	}
	w.mu.Unlock()
	w.index.mu.RLock()
	defer w.index.mu.RUnlock()
	for key, o := range w.index.objects {
		if _, watched := counts[key.GroupKind().String()]; watched && o.live != nil {
			counts[key.GroupKind().String()]++
		}
	}
	return counts
}

// use sets the kinds of an owner, and returns their watches. Each watch has started, has
// failed or is about to start. It returns the watch of each kind. needed is true for kinds that
// an action applies, and false for kinds that only a release record names.
func (w *Watches) use(owner types.UID, kinds []schema.GroupVersionKind, needed bool) []*watch {
	w.mu.Lock()
	defer w.mu.Unlock()
	watches := make([]*watch, 0, len(kinds))
	for _, gvk := range kinds {
		known := w.kinds[gvk.GroupKind()]
		switch {
		case known == nil:
			known = newWatch(gvk)
			w.kinds[gvk.GroupKind()] = known
		case known.resource.Empty():
			// The watch is not running; the API server may serve another version now.
			known.gvk = gvk
		}
		if known.drop != nil {
			known.drop.Stop()
			known.drop = nil
		}
		known.owners[owner] = struct{}{}
		if needed && !known.needed {
			// The last attempt may have failed because the kind was not looked up.
			known.needed, known.startedAt = true, time.Time{}
		}
		if w.isDue(known) {
			go w.start(known)
		}
		watches = append(watches, known)
	}
	for _, gvk := range w.byOwner[owner] {
		if !slices.Contains(watches, w.kinds[gvk.GroupKind()]) {
			w.release(gvk.GroupKind(), owner)
		}
	}
	if !slices.Equal(kinds, w.last) {
		w.last = kinds
	}
	w.byOwner[owner] = w.last
	if len(kinds) == 0 {
		delete(w.byOwner, owner)
	}
	return watches
}

// release removes an owner from a watch. If it was the last owner, the watch is stopped
// after idleTimeout. The caller holds the lock.
func (w *Watches) release(gk schema.GroupKind, owner types.UID) {
	unused := w.kinds[gk]
	if unused == nil {
		return
	}
	delete(unused.owners, owner)
	if len(unused.owners) > 0 || unused.drop != nil {
		return
	}
	if unused.resource.Empty() {
		// The watch has never started.
		w.forget(gk, unused)
		return
	}
	unused.drop = w.after(idleTimeout, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(unused.owners) > 0 || w.kinds[gk] != unused {
			return
		}
		w.forget(gk, unused)
		// An informer that cannot be removed has no effect.
		for at := range unused.synced {
			_ = at.cache.RemoveInformer(context.Background(), w.index.HealthConfig.watchedType(unused.gvk))
		}
		w.index.purge(gk)
	})
}

// forget removes a watch. The caller holds the lock.
func (w *Watches) forget(gk schema.GroupKind, unused *watch) {
	if unused.retry != nil {
		unused.retry.Stop()
	}
	delete(w.kinds, gk)
	w.index.setUnwatched(gk, nil)
}

// Inventory is the index of the managed objects with the watches that update it.
type Inventory struct {
	*Index
	*Watches
}

// Forget removes a deleted owner.
func (i Inventory) Forget(owner types.UID) {
	i.Index.Forget(owner)
	i.use(owner, nil, false)
}
