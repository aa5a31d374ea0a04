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

// ErrUnwatched marks kinds whose objects cannot be watched. Their drift is not
// detected, and their health is not known.
var ErrUnwatched = errors.New("objects cannot be watched")

// idleTimeout is how long a watch stays when no release needs it, so that a release
// that is made again does not start it anew.
const idleTimeout = 10 * time.Minute

// watchStartTimeout is how long an action waits for a watch to begin. It begins within
// milliseconds, or not at all.
const watchStartTimeout = 3 * time.Second

// Watches holds one watch for each kind of dependents, as long as a release
// needs it, in each namespace that has joined. A kind that cannot be watched
// affects no other kind; see unwatched.go.
type Watches struct {
	index *Index
	// mapping returns the resource of a kind. It may send a request, and is
	// called outside any lock.
	mapping func(schema.GroupVersionKind) (*meta.RESTMapping, error)
	// MayServe reports, without a request, whether the API server may serve a kind.
	// The resource of a kind that only Also was told of is not looked up otherwise.
	// Nil means that it may serve every kind. To be set before the first use.
	MayServe func(schema.GroupVersionKind) bool
	// after and now are time.AfterFunc and time.Now, but for tests.
	after func(time.Duration, func()) *time.Timer
	now   func() time.Time

	mu      sync.Mutex
	caches  []namespaceCache
	kinds   map[schema.GroupKind]*watch
	byOwner map[types.UID][]schema.GroupVersionKind
	// last is what Need was told last: the releases of one chart have the same
	// kinds, and share them.
	last []schema.GroupVersionKind
}

// namespaceCache is a namespace, empty for all, with its cache.
type namespaceCache struct {
	namespace string
	cache     cache.Cache
}

// NewWatches returns an empty set of watches. The function mapping returns the
// resource of a kind.
func NewWatches(index *Index, mapping func(schema.GroupVersionKind) (*meta.RESTMapping, error)) *Watches {
	return &Watches{
		index:   index,
		mapping: mapping,
		after:   time.AfterFunc,
		now:     time.Now,
		kinds:   map[schema.GroupKind]*watch{},
		byOwner: map[types.UID][]schema.GroupVersionKind{},
	}
}

// AddNamespace adds a namespace, empty for all, and begins to watch there what is watched
// in others. The cache must be one of its own, made with Options. Objects without
// a namespace are watched by the cache of the first namespace.
func (w *Watches) AddNamespace(namespace string, c cache.Cache) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.caches = append(w.caches, namespaceCache{namespace, c})
	for _, watch := range w.kinds {
		go w.start(watch)
	}
}

// EnsureWatched sets the kinds of the objects that the release of an owner has in a
// namespace, in place of those that were set before, and waits until all are
// watched there. The error is ErrUnwatched and names the kinds that are not; all
// others are watched. Need returns when the context ends, or after a few seconds.
func (w *Watches) EnsureWatched(ctx context.Context, owner types.UID, namespace string, kinds []schema.GroupVersionKind) error {
	needed := w.use(owner, kinds, true)
	ctx, cancel := context.WithTimeout(ctx, watchStartTimeout)
	defer cancel()
	var errs []error
	for _, watch := range needed {
		if why := w.wait(ctx, namespace, watch, false); why != "" {
			errs = append(errs, fmt.Errorf("%w: %s: %s", ErrUnwatched, watch.gvk.GroupKind(), why))
		}
	}
	return errors.Join(errs...)
}

// WatchMore begins to watch more kinds that an owner's release has objects of, and
// waits for nothing.
func (w *Watches) WatchMore(owner types.UID, kinds []schema.GroupVersionKind) {
	w.mu.Lock()
	known := w.byOwner[owner]
	w.mu.Unlock()
	more := slices.DeleteFunc(slices.Clone(kinds), func(gvk schema.GroupVersionKind) bool { return slices.Contains(known, gvk) })
	if len(more) > 0 {
		w.use(owner, slices.Concat(known, more), false)
	}
}

// WaitForSync waits until every watch in a namespace, empty for all, has received all
// objects, or has failed.
func (w *Watches) WaitForSync(ctx context.Context, namespace string) {
	w.mu.Lock()
	known := slices.Collect(maps.Values(w.kinds))
	w.mu.Unlock()
	for _, watch := range known {
		w.wait(ctx, namespace, watch, true)
	}
}

// Kinds returns what Need was last told of an owner.
func (w *Watches) Kinds(owner types.UID) []schema.GroupVersionKind {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.byOwner[owner]
}

// Counts returns, for each watched kind, how many objects of it are known.
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

// use sets the kinds of an owner, and returns their watches, each of which has
// begun, has failed, or does so in a moment. An action needs kinds that it applies,
// and not those that a record names.
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
			// It has not begun; the API server may have another version by now.
			known.gvk = gvk
		}
		if known.drop != nil {
			known.drop.Stop()
			known.drop = nil
		}
		known.owners[owner] = struct{}{}
		if needed && !known.needed {
			// The last failure may be that it was not looked up.
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

// release ends an owner's use of a watch, and the watch after a while where no
// other owner uses it. It is called under the lock.
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
		// It has never begun.
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
		// What cannot be stopped goes on watching nothing.
		for at := range unused.synced {
			_ = at.cache.RemoveInformer(context.Background(), w.index.HealthConfig.watchedType(unused.gvk))
		}
		w.index.purge(gk)
	})
}

// forget drops a watch. It is called under the lock.
func (w *Watches) forget(gk schema.GroupKind, unused *watch) {
	if unused.retry != nil {
		unused.retry.Stop()
	}
	delete(w.kinds, gk)
	w.index.setUnwatched(gk, nil)
}

// Inventory is what an operator knows of the objects that it has made.
type Inventory struct {
	*Index
	*Watches
}

// Forget drops what is known of an owner that is gone.
func (i Inventory) Forget(owner types.UID) {
	i.Index.Forget(owner)
	i.use(owner, nil, false)
}
