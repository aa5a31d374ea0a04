package operator

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/catalog"
)

// sharedTimeout is how long a kind waits for the objects of shared watches. The API server
// may never list them.
const sharedTimeout = 5 * time.Second

// discoveryPeriod is the time between two attempts to discover a resource.
const discoveryPeriod = 5 * time.Second

// feed receives the objects of a watch.
type feed interface {
	Handler() toolscache.ResourceEventHandler
	// Transform is the transform of the informer.
	Transform(object any) (any, error)
	// Synced records that the watch has listed all existing objects, or works again.
	Synced()
	// Failed records why the watch fails, and reports whether the reason is new.
	Failed(reason string) (isNew bool)
	// End removes all objects. The feed is then without effect, because informers end some
	// time after they are stopped.
	End()
}

// sharedWatch describes the watch of one kind of objects.
type sharedWatch struct {
	kind schema.GroupVersionKind
	feed feed
	// object is the Go type of the objects in the cache.
	object client.Object
	// options completes the options of the cache. It may be nil.
	options func(*cache.Options) error
	// check rejects resources that cannot be watched. It may be nil.
	check func(*meta.RESTMapping) error
	// forbidden returns the reason if the operator lacks the permission for the watch.
	forbidden func(*meta.RESTMapping) string
}

// sharedWatches watches objects that reconciliations read in addition to the managed
// resources. Kinds share watches with equal keys.
type sharedWatches[K comparable] struct {
	informers
	// purpose of the objects is part of log messages.
	purpose string
	// describe returns the watch of a key.
	describe func(K) sharedWatch
	// keysOf returns the keys of the watches that a kind needs.
	keysOf func(catalog.Kind) []K
	// until ends the watches. It is a field because a kind that starts a watch may end
	// before other kinds that use the watch.
	until context.Context

	mu      sync.Mutex
	running map[K]runningWatch
	// unserved are the watches whose kind the API server does not serve.
	unserved map[K]bool
}

// runningWatch is a started watch. The channel is closed when the watch has listed all
// existing objects, or cannot.
type runningWatch struct {
	feed
	settled <-chan struct{}
	stop    context.CancelFunc
}

func newSharedWatches[K comparable](caches informers, purpose string, describe func(K) sharedWatch, keysOf func(catalog.Kind) []K) sharedWatches[K] {
	return sharedWatches[K]{
		informers: caches, purpose: purpose, describe: describe, keysOf: keysOf,
		running: map[K]runningWatch{}, unserved: map[K]bool{},
	}
}

// await waits until started watches have listed all objects or failed, so that the first
// reconciliations do not write an incomplete status. A failed watch does not delay the kind.
func await(ctx context.Context, started []<-chan struct{}) {
	timeout := time.After(sharedTimeout)
	for _, settled := range started {
		select {
		case <-settled:
		case <-timeout:
			return
		case <-ctx.Done():
			return
		}
	}
}

// startKind starts the watches of a kind, and waits until they have settled.
func (s *sharedWatches[K]) startKind(ctx context.Context, kind catalog.Kind) {
	keys := s.keysOf(kind)
	started := make([]<-chan struct{}, len(keys))
	for i, key := range keys {
		started[i] = s.start(key)
	}
	await(ctx, started)
}

// endUnused ends the watches that none of the kinds needs.
func (s *sharedWatches[K]) endUnused(kinds []catalog.Kind) {
	needed := map[K]bool{}
	for _, kind := range kinds {
		for _, key := range s.keysOf(kind) {
			needed[key] = true
		}
	}
	s.stop(func(key K) bool { return !needed[key] })
}

// start returns the channel of a watch. It starts the watch if no kind has started it.
func (s *sharedWatches[K]) start(key K) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, started := s.running[key]; !started {
		s.running[key] = s.watch(key)
	}
	return s.running[key].settled
}

// stop ends the watches whose keys the function accepts.
func (s *sharedWatches[K]) stop(ends func(K) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.running, func(key K, w runningWatch) bool {
		if ends(key) {
			w.stop()
			w.End()
			delete(s.unserved, key)
			return true
		}
		return false
	})
}

// retryUnserved starts the watches whose kind was not served. It is called after a change
// of a CRD.
func (s *sharedWatches[K]) retryUnserved() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range slices.Collect(maps.Keys(s.unserved)) {
		delete(s.unserved, key)
		s.running[key].stop()
		s.running[key] = s.watch(key)
	}
}

// watch starts a watch and does not wait for the API server.
func (s *sharedWatches[K]) watch(key K) runningWatch {
	ctx, stop := context.WithCancel(s.until)
	settled := newLatch()
	w := s.describe(key)
	w.object.GetObjectKind().SetGroupVersionKind(w.kind)
	s.tasks.Go(func() {
		defer settled.set()
		mapping, err := s.mapping(ctx, w, settled)
		switch {
		case err != nil:
			s.mu.Lock()
			if ctx.Err() == nil {
				s.unserved[key] = true
			}
			s.mu.Unlock()
		case w.check != nil:
			err = w.check(mapping)
		}
		if err != nil {
			s.fail(w, err.Error())
			return
		}
		all := s.scopes
		if mapping.Scope.Name() == meta.RESTScopeNameRoot {
			// One watch, which does not depend on the release records of any namespace.
			cluster := newScope("")
			cluster.ready.set()
			all = scopes{cluster}
		}
		var failed atomic.Bool
		all.each(ctx, s.tasks, func(scope *namespaceScope) {
			if err := s.watchScope(ctx, scope, w, mapping, settled); err != nil && ctx.Err() == nil {
				failed.Store(true)
				s.fail(w, err.Error())
				settled.set()
			}
		})
		if !failed.Load() && ctx.Err() == nil {
			w.feed.Synced()
		}
	})
	return runningWatch{feed: w.feed, settled: settled.done, stop: stop}
}

// mapping returns the resource of a watch. If the API server cannot tell, it reports the
// error and asks again until the context ends.
func (s *sharedWatches[K]) mapping(ctx context.Context, w sharedWatch, settled latch) (*meta.RESTMapping, error) {
	for {
		mapping, err := s.manager.GetRESTMapper().RESTMapping(w.kind.GroupKind(), w.kind.Version)
		if err == nil || meta.IsNoMatchError(err) {
			return mapping, err
		}
		s.fail(w, err.Error())
		settled.set()
		if !receive(ctx, time.After(discoveryPeriod)) {
			return nil, err
		}
	}
}

// watchScope watches a scope, and returns when all existing objects are listed.
func (s *sharedWatches[K]) watchScope(ctx context.Context, scope *namespaceScope, w sharedWatch, mapping *meta.RESTMapping, settled latch) error {
	options := s.cacheOptions(scope)
	options.DefaultTransform = w.feed.Transform
	if w.options != nil {
		if err := w.options(&options); err != nil {
			return err
		}
	}
	var listed atomic.Bool
	var failures outage
	options.DefaultWatchErrorHandler = func(ctx context.Context, reflector *toolscache.Reflector, err error) {
		toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
		switch {
		case apierrors.IsForbidden(err):
			s.fail(w, w.forbidden(mapping))
		case apply.AnswerOf(err) == apply.Unserved:
			s.fail(w, err.Error())
		default:
			// The API server is unavailable, and the watch is retried.
			return
		}
		settled.set()
		if listed.Load() {
			failures.again(func() {
				if ctx.Err() == nil {
					w.feed.Synced()
				}
			})
		}
	}
	started, err := s.informers.watch(ctx, w.object, options, w.feed.Handler())
	if err != nil {
		return err
	}
	if !receive(ctx, started.synced) {
		return ctx.Err()
	}
	listed.Store(true)
	return nil
}

// outage detects the end of the failures of a watch, about which no event reports.
type outage struct {
	since time.Time
	ended *time.Timer
}

// again notes a failure, and calls works if the next attempt does not fail. A reflector waits
// between two attempts at most about twice as long as it has failed, and at most a minute.
func (o *outage) again(works func()) {
	now := time.Now()
	if o.ended == nil || !o.ended.Stop() {
		o.since = now
	}
	o.ended = time.AfterFunc(min(2*now.Sub(o.since)+5*time.Second, 75*time.Second), works)
}

func (s *sharedWatches[K]) fail(w sharedWatch, reason string) {
	if w.feed.Failed(reason) {
		s.logger.Info("failed to watch objects", "purpose", s.purpose, "kind", w.kind.Kind, "group", w.kind.Group, "version", w.kind.Version, "reason", reason)
	}
}
