package operator

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/inputs/observed"
)

// observedTimeout is how long a kind waits for the objects that its status fields read. The
// API server may never list them.
const observedTimeout = 5 * time.Second

// observedWatches watches the objects that status fields read in addition to the managed
// resources. Kinds share watches.
type observedWatches struct {
	informers
	store *observed.Store
	// until ends the watches. It is a field because a kind that starts a watch may end
	// before other kinds that use the watch.
	until context.Context

	mu sync.Mutex
	// watches are the started watches. The channel is closed when a watch has listed all
	// existing objects, or cannot.
	watches map[observed.Watch]<-chan struct{}
	// unserved are the watches whose kind the API server does not serve.
	unserved map[observed.Watch]bool
}

// start starts the watches of a kind and waits until they have listed all objects or
// failed, so that the first reconciliations do not write an incomplete status. A failed
// watch does not delay the kind.
func (o *observedWatches) start(ctx context.Context, kind catalog.Kind) {
	timeout := time.After(observedTimeout)
	for _, input := range kind.Observes {
		select {
		case <-o.started(input.Watch):
		case <-timeout:
			return
		case <-ctx.Done():
			return
		}
	}
}

// started returns the channel of a watch. It starts the watch if no kind has started it.
func (o *observedWatches) started(w observed.Watch) <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.watches[w] == nil {
		o.watches[w] = o.watch(o.until, w)
	}
	return o.watches[w]
}

// retryUnserved starts the watches whose kind was not served. It is called after a change
// of a CRD.
func (o *observedWatches) retryUnserved() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, w := range slices.Collect(maps.Keys(o.unserved)) {
		delete(o.unserved, w)
		o.watches[w] = o.watch(o.until, w)
	}
}

// watch starts a watch and does not wait for the API server.
func (o *observedWatches) watch(ctx context.Context, w observed.Watch) <-chan struct{} {
	settled := newLatch()
	o.tasks.Go(func() {
		defer settled.set()
		mapping, err := o.manager.GetRESTMapper().RESTMapping(w.GroupKind(), w.Version)
		var selector labels.Selector
		switch {
		case err != nil:
			o.mu.Lock()
			o.unserved[w] = true
			o.mu.Unlock()
		case mapping.Scope.Name() != meta.RESTScopeNameNamespace:
			err = errors.New("the kind is cluster-scoped, but only objects in the namespace of the release can be observed")
		default:
			selector, err = w.Selector()
		}
		if err != nil {
			o.fail(w, err.Error())
			return
		}
		var failed atomic.Bool
		o.scopes.each(ctx, o.tasks, func(scope *namespaceScope) {
			if err := o.watchScope(ctx, scope, w, selector, settled); err != nil && ctx.Err() == nil {
				failed.Store(true)
				o.fail(w, err.Error())
				settled.set()
			}
		})
		if !failed.Load() && ctx.Err() == nil {
			o.store.Synced(w)
		}
	})
	return settled.done
}

// watchScope watches a scope, and returns when all existing objects are listed.
func (o *observedWatches) watchScope(ctx context.Context, scope *namespaceScope, w observed.Watch, selector labels.Selector, settled latch) error {
	options := o.cacheOptions(scope)
	options.DefaultLabelSelector = selector
	options.DefaultTransform = observed.Compact
	options.DefaultWatchErrorHandler = func(ctx context.Context, reflector *toolscache.Reflector, err error) {
		toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
		// Other errors mean that the API server is unavailable, and are retried.
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
			o.fail(w, "add a rule to the operator's role to get, list and watch them")
			settled.set()
		}
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(w.GroupVersionKind)
	started, err := o.informers.watch(ctx, object, options, o.store.Handler(w))
	if err != nil {
		return err
	}
	select {
	case <-started.synced:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (o *observedWatches) fail(w observed.Watch, reason string) {
	if o.store.Failed(w, reason) {
		o.logger.Info("failed to watch objects of status fields", "kind", w.Kind, "group", w.Group, "version", w.Version, "reason", reason)
	}
}
