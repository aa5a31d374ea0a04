package inventory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ErrUnwatched marks kinds whose objects cannot be watched, most often for
// lack of rights. Their damage is not seen.
var ErrUnwatched = errors.New("objects cannot be watched")

// linger is how long a watch stays when no release needs it, so that a release
// that is made again does not start it anew.
const linger = 10 * time.Minute

// patience is how long an action waits for a watch to begin. It begins within
// milliseconds, or not at all.
const patience = 3 * time.Second

// Watches holds one watch a kind of dependents, as long as a release needs it,
// in each namespace that has joined.
type Watches struct {
	index *Index
	// namespaced tells whether objects of a kind have a namespace.
	namespaced func(schema.GroupVersionKind) (bool, error)
	// after is time.AfterFunc, but for tests.
	after func(time.Duration, func()) *time.Timer

	mu      sync.Mutex
	joined  []joined
	kinds   map[schema.GroupKind]*watch
	byOwner map[types.UID][]schema.GroupVersionKind
	// last is what Need was told last: the releases of one chart have the same
	// kinds, and share them.
	last []schema.GroupVersionKind
}

// joined is a namespace, empty for all, with its cache.
type joined struct {
	namespace string
	cache     cache.Cache
}

type watch struct {
	gvk   schema.GroupVersionKind
	users map[types.UID]struct{}
	// synced tells of each cache that the watch is in.
	synced map[joined]toolscache.DoneChecker
	drop   *time.Timer
}

// NewWatches returns no watches yet.
func NewWatches(index *Index, namespaced func(schema.GroupVersionKind) (bool, error)) *Watches {
	return &Watches{
		index:      index,
		namespaced: namespaced,
		after:      time.AfterFunc,
		kinds:      map[schema.GroupKind]*watch{},
		byOwner:    map[types.UID][]schema.GroupVersionKind{},
	}
}

// Join adds a namespace, empty for all, and begins to watch there what is watched
// in others. The cache must be one of its own, made with Options. What has no
// namespace is watched by the first one's.
func (w *Watches) Join(ctx context.Context, namespace string, c cache.Cache) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.joined = append(w.joined, joined{namespace, c})
	for _, known := range w.kinds {
		if err := w.spread(ctx, known); err != nil {
			return err
		}
	}
	return nil
}

// Need says which kinds the release of an owner, in a namespace, has objects of,
// in place of what was said before, and waits until all are watched there. The
// error is ErrUnwatched and names those that are not; the others are. It waits
// no longer than the context, and a few seconds.
func (w *Watches) Need(ctx context.Context, owner types.UID, namespace string, kinds []schema.GroupVersionKind) error {
	w.mu.Lock()
	watches, unknown, err := w.need(ctx, owner, kinds)
	w.mu.Unlock()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var errs []error
	for _, gvk := range unknown {
		errs = append(errs, fmt.Errorf("%w: %s: the API server has no such kind", ErrUnwatched, gvk.GroupKind()))
	}
	for _, watch := range watches {
		if !toolscache.WaitFor(ctx, "", w.in(namespace, watch)...) {
			errs = append(errs, fmt.Errorf("%w: %s: give the operator the right to list and watch them", ErrUnwatched, watch.gvk.GroupKind()))
		}
	}
	return errors.Join(errs...)
}

// Also begins to watch more kinds that an owner's release has objects of, and
// waits for nothing. Those that the API server does not have are left out.
func (w *Watches) Also(ctx context.Context, owner types.UID, kinds []schema.GroupVersionKind) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := slices.Clone(w.byOwner[owner])
	for _, gvk := range kinds {
		if !slices.Contains(all, gvk) {
			all = append(all, gvk)
		}
	}
	if len(all) == len(w.byOwner[owner]) {
		return nil
	}
	_, _, err := w.need(ctx, owner, all)
	return err
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
	for gk := range w.kinds {
		counts[gk.String()] = 0
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

// need is called under the lock.
func (w *Watches) need(ctx context.Context, owner types.UID, kinds []schema.GroupVersionKind) (needed []*watch, unknown []schema.GroupVersionKind, err error) {
	keep := map[schema.GroupKind]bool{}
	for _, gvk := range kinds {
		known, ok := w.kinds[gvk.GroupKind()]
		if !ok {
			known, err = w.begin(ctx, gvk)
			if meta.IsNoMatchError(err) {
				unknown = append(unknown, gvk)
				continue
			}
			if err != nil {
				return nil, nil, err
			}
			w.kinds[gvk.GroupKind()] = known
		}
		if known.drop != nil {
			known.drop.Stop()
			known.drop = nil
		}
		known.users[owner] = struct{}{}
		keep[gvk.GroupKind()] = true
		needed = append(needed, known)
	}
	for _, gvk := range w.byOwner[owner] {
		if !keep[gvk.GroupKind()] {
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
	return needed, unknown, nil
}

func (w *Watches) begin(ctx context.Context, gvk schema.GroupVersionKind) (*watch, error) {
	begun := &watch{gvk: gvk, users: map[types.UID]struct{}{}, synced: map[joined]toolscache.DoneChecker{}}
	return begun, w.spread(ctx, begun)
}

// spread begins a watch in the namespaces in which it has not begun.
func (w *Watches) spread(ctx context.Context, begun *watch) error {
	for i, at := range w.joined {
		if begun.synced[at] != nil {
			continue
		}
		if i > 0 {
			if namespaced, err := w.namespaced(begun.gvk); err != nil {
				return fmt.Errorf("watch %s: %w", begun.gvk.GroupKind(), err)
			} else if !namespaced {
				return nil
			}
		}
		informer, err := at.cache.GetInformer(ctx, w.index.Judge.shapeOf(begun.gvk), cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch %s: %w", begun.gvk.GroupKind(), err)
		}
		registration, err := informer.AddEventHandler(w.index.handler())
		if err != nil {
			return fmt.Errorf("watch %s: %w", begun.gvk.GroupKind(), err)
		}
		begun.synced[at] = registration.HasSyncedChecker()
	}
	return nil
}

// in returns what tells that a watch has seen all that a namespace has, and all
// that has none: another namespace may be closed to us.
func (w *Watches) in(namespace string, begun *watch) (synced []toolscache.DoneChecker) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for at, is := range begun.synced {
		if at.namespace == namespace || at.namespace == "" || len(begun.synced) == 1 {
			synced = append(synced, is)
		}
	}
	return synced
}

// release ends an owner's use of a watch, and the watch after a while where
// nobody else uses it.
func (w *Watches) release(gk schema.GroupKind, owner types.UID) {
	unused := w.kinds[gk]
	if unused == nil {
		return
	}
	delete(unused.users, owner)
	if len(unused.users) > 0 || unused.drop != nil {
		return
	}
	unused.drop = w.after(linger, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(unused.users) > 0 || w.kinds[gk] != unused {
			return
		}
		delete(w.kinds, gk)
		// What cannot be stopped goes on watching nothing.
		for at := range unused.synced {
			_ = at.cache.RemoveInformer(context.Background(), w.index.Judge.shapeOf(unused.gvk))
		}
		w.index.purge(gk)
	})
}

// shapeOf says how objects of a kind are watched: whole, where their health is
// to be read, and their metadata else. Kubernetes' own kinds are watched by their
// types, and so by protobuf, which costs a fraction of JSON. A health rule may
// read any field, under the name that it has in JSON.
func (j Judge) shapeOf(gvk schema.GroupVersionKind) client.Object {
	if !j.whole(gvk.GroupKind()) {
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(gvk)
		return object
	}
	if typed, err := scheme.Scheme.New(gvk); err == nil && !j.ruled(gvk.GroupKind()) {
		if object, ok := typed.(client.Object); ok {
			return object
		}
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gvk)
	return object
}

// Options completes the options of the dependents' cache.
func (x *Index) Options(options cache.Options) cache.Options {
	options.DefaultTransform = x.Judge.compact
	return options
}
