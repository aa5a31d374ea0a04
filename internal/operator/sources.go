package operator

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/inputs/valuesfrom"
	"github.com/chartwright/chartwright/internal/operator/permissions"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/watches"
)

// sourceWatches watches the kinds that valuesFrom uses. Kinds share watches. An operator
// without ConfigMaps in valuesFrom needs no permission to watch them.
//
// A scope is ready when its Secrets and ConfigMaps are listed. Objects of other kinds do not
// delay a scope, because their kind may not be served yet.
type sourceWatches struct {
	informers
	store *valuesfrom.Store
	// others are the watches of kinds other than Secrets and ConfigMaps.
	others sharedWatches[schema.GroupVersionKind]
	// until ends the watches of Secrets and ConfigMaps.
	until context.Context

	mu sync.Mutex
	// started are the started watches. The channel is closed when a watch has listed all
	// existing objects, or is forbidden.
	started map[sourceWatch]<-chan struct{}
}

// sourceWatch is a watch for the sources of values of one kind in one scope.
type sourceWatch struct {
	scope *namespaceScope
	kind  schema.GroupVersionKind
}

func newSourceWatches(caches informers, store *valuesfrom.Store) *sourceWatches {
	describe := func(kind schema.GroupVersionKind) sharedWatch {
		feed := store.Feed(kind)
		return sharedWatch{
			kind: kind, feed: feed, object: &metav1.PartialObjectMetadata{},
			check: func(mapping *meta.RESTMapping) error {
				feed.Scoped(mapping.Scope.Name() == meta.RESTScopeNameRoot)
				return nil
			},
			forbidden: func(mapping *meta.RESTMapping) string {
				return valuesfrom.Forbidden(permissions.WatchRule(mapping.Resource))
			},
		}
	}
	return &sourceWatches{
		informers: caches, store: store, others: newSharedWatches(caches, "sources of values", describe, otherSources),
		started: map[sourceWatch]<-chan struct{}{},
	}
}

// openSources watches the sources that the present kinds need in a scope.
func (k *KindManager) openSources(ctx context.Context, scope *namespaceScope) error {
	return k.sources.start(ctx, scope, k.set.Kinds()...)
}

// startSources watches the sources that a kind needs, in all scopes that are ready. Other
// scopes watch them when they become ready. It waits until the watches have settled.
func (k *KindManager) startSources(ctx context.Context, kind catalog.Kind) {
	for _, scope := range k.scopes {
		if isClosed(scope.ready.done) {
			if err := k.sources.start(ctx, scope, kind); err != nil && ctx.Err() == nil {
				k.logger.Error(err, "sources of values not watched", "kind", kind.Kind, "namespace", scope.name)
			}
		}
	}
	k.sources.others.startKind(ctx, kind)
}

// otherSources returns the kinds other than Secrets and ConfigMaps.
func otherSources(kind catalog.Kind) []schema.GroupVersionKind {
	var others []schema.GroupVersionKind
	for _, from := range kind.ValuesFrom {
		if !from.HasKeys() {
			others = append(others, from.GVK())
		}
	}
	return others
}

// start starts the watches of Secrets and ConfigMaps that kinds need in a scope, and waits
// until they have listed all existing objects or are forbidden.
func (w *sourceWatches) start(ctx context.Context, scope *namespaceScope, kinds ...catalog.Kind) error {
	for _, source := range []schema.GroupVersionKind{valuesfrom.SecretKind, valuesfrom.ConfigMapKind} {
		if !slices.ContainsFunc(kinds, func(kind catalog.Kind) bool {
			return slices.ContainsFunc(kind.ValuesFrom, func(from watches.ValuesFrom) bool { return from.GVK() == source })
		}) {
			continue
		}
		settled, err := w.watch(sourceWatch{scope, source})
		if err != nil {
			return err
		}
		if !receive(ctx, settled) {
			return ctx.Err()
		}
	}
	return nil
}

// watch returns the channel of a watch. It starts the watch if no kind has started it.
func (w *sourceWatches) watch(of sourceWatch) (<-chan struct{}, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.started[of] != nil {
		return w.started[of], nil
	}
	options := w.cacheOptions(of.scope)
	options.DefaultTransform = valuesfrom.Compact
	if of.kind == valuesfrom.SecretKind {
		// Release records are numerous and never sources of values.
		options.DefaultFieldSelector = fields.OneTermNotEqualSelector("type", release.SecretType)
	}
	started, err := w.watchMetadata(w.until, of.kind, options, w.store.Handler(of.kind))
	if err != nil {
		return nil, err
	}
	settled := newLatch()
	w.started[of] = settled.done
	w.tasks.Go(func() {
		defer settled.set()
		select {
		case <-started.synced:
			return
		case <-started.failed:
		case <-w.until.Done():
			return
		}
		feed := w.store.Feed(of.kind)
		resource, _ := meta.UnsafeGuessKindToResource(of.kind)
		reason := valuesfrom.Forbidden(permissions.WatchRule(resource))
		feed.Failed(reason)
		w.logger.Info("sources of values not watched", "kind", of.kind.Kind, "namespace", of.scope.name, "reason", reason)
		// Kinds without such sources can be served.
		settled.set()
		if receive(w.until, started.synced) {
			feed.Synced()
		}
	})
	return settled.done, nil
}
