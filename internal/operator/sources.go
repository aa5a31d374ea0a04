package operator

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/inputs/valuesfrom"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/watches"
)

// sourceWatches watches the kinds that valuesFrom uses. Kinds share watches. An operator
// without ConfigMaps in valuesFrom needs no permission to watch them.
type sourceWatches struct {
	informers
	store *valuesfrom.Store
	// until ends the watches.
	until context.Context

	mu sync.Mutex
	// started are the started watches. The channel is closed when a watch has listed all
	// existing objects, or is forbidden.
	started map[sourceWatch]<-chan struct{}
}

// sourceWatch is a watch for the sources of values of one kind in one scope.
type sourceWatch struct {
	scope *namespaceScope
	kind  watches.SourceKind
}

// openSources watches the sources that the present kinds need in a scope.
func (k *KindManager) openSources(ctx context.Context, scope *namespaceScope) error {
	return k.sources.start(ctx, scope, k.set.Kinds()...)
}

// startSources watches the sources that a kind needs, in all scopes that are ready. Other
// scopes watch them when they become ready.
func (k *KindManager) startSources(ctx context.Context, kind catalog.Kind) {
	for _, scope := range k.scopes {
		if isClosed(scope.ready.done) {
			if err := k.sources.start(ctx, scope, kind); err != nil && ctx.Err() == nil {
				k.logger.Error(err, "sources of values not watched", "kind", kind.Kind, "namespace", scope.name)
			}
		}
	}
}

// start starts the watches that kinds need in a scope, and waits until they have listed
// all existing objects or are forbidden.
func (w *sourceWatches) start(ctx context.Context, scope *namespaceScope, kinds ...catalog.Kind) error {
	for _, source := range []watches.SourceKind{watches.SourceSecret, watches.SourceConfigMap} {
		if !slices.ContainsFunc(kinds, func(kind catalog.Kind) bool {
			return slices.ContainsFunc(kind.ValuesFrom, func(from watches.ValuesFrom) bool { return from.Kind == source })
		}) {
			continue
		}
		settled, err := w.watch(sourceWatch{scope, source})
		if err != nil {
			return err
		}
		select {
		case <-settled:
		case <-ctx.Done():
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
	if of.kind == watches.SourceSecret {
		// Release records are numerous and never sources of values.
		options.DefaultFieldSelector = fields.OneTermNotEqualSelector("type", release.SecretType)
	}
	started, err := w.watchMetadata(w.until, schema.GroupVersionKind{Version: "v1", Kind: string(of.kind)}, options, w.store.Handler(of.kind))
	if err != nil {
		return nil, err
	}
	settled := make(chan struct{})
	w.started[of] = settled
	w.tasks.Go(func() {
		defer close(settled)
		select {
		case <-started.synced:
		case <-started.failed:
			// Kinds without such sources can be served.
			w.logger.Info("sources of values not watched because of a missing permission: changes are not detected", "kind", of.kind)
		case <-w.until.Done():
		}
	})
	return settled, nil
}
