package operator

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/chartwright/chartwright/internal/reconcile"
)

var zeroDuration time.Duration

// fill returns a cache that holds the kind's custom resources of an area. What the
// API server answers in place of them is passed to failed. A try that has failed
// goes on by itself, ever more rarely, and makes room for another when the
// operator's permissions have changed.
func (s *service) fill(ctx context.Context, a *area, changed <-chan struct{}, failed func(why string)) (cache.Cache, error) {
	for {
		stop, failures := make(chan struct{}), make(chan string, 1)
		customResources, err := s.newCache(a, stop, func(why string) {
			select {
			case failures <- why:
			default: // another failure is waiting
			}
		})
		if err != nil {
			return nil, err
		}
		informer, err := customResources.GetInformer(ctx, s.object, cache.BlockUntilSynced(false))
		if err != nil {
			close(stop)
			return nil, err
		}
		synced := informer.HasSyncedChecker().Done()
		var again <-chan struct{}
		for filling := true; filling; {
			select {
			case <-synced:
				return customResources, nil
			case why := <-failures:
				failed(why)
				again = changed
			case <-again:
				close(stop)
				filling = false
			case <-ctx.Done():
				close(stop)
				return nil, ctx.Err()
			}
		}
	}
}

// newCache returns a cache for the custom resources of an area, which ends when it
// is stopped.
func (s *service) newCache(a *area, stop <-chan struct{}, failed func(why string)) (cache.Cache, error) {
	options := s.cacheOptions()
	a.limit(&options)
	options.HTTPClient = s.heedAnswers(options.HTTPClient)
	options.DefaultWatchErrorHandler = func(ctx context.Context, reflector *toolscache.Reflector, err error) {
		toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
		why := failureOf(err)
		if why == whyForbidden {
			s.rights.ask()
		}
		if why != "" {
			failed(why)
		}
	}
	// A pass copies what it changes.
	options.DefaultUnsafeDisableDeepCopy = new(true)
	packed, err := s.listWatch(a, options.HTTPClient)
	if err != nil {
		return nil, err
	}
	options.NewInformer = func(_ toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		return toolscache.NewSharedIndexInformer(packed, object, resync, indexers)
	}
	customResources, err := cache.New(s.manager.GetConfig(), options)
	if err != nil {
		return nil, err
	}
	return customResources, s.manager.Add(standbyCache{Cache: customResources, stop: stop})
}

// failureOf returns why the custom resources of a kind cannot be listed or watched,
// empty where the error says nothing of the kind: the API server is away, or it
// does not serve the kind, of which heedAnswers learns.
func failureOf(err error) string {
	var status apierrors.APIStatus
	switch {
	case !errors.As(err, &status), apierrors.IsNotFound(err), apierrors.IsResourceExpired(err), apierrors.IsGone(err), apierrors.IsTooManyRequests(err):
		return ""
	case apierrors.IsForbidden(err):
		return whyForbidden
	default:
		return status.Status().Message
	}
}

// addController begins to serve the kind, with what the caches hold.
func (s *service) addController() error {
	wake := &wakeup{}
	kind := s.kind
	reconciler := &reconcile.Reconciler{Shared: s.shared, Kind: kind, Reader: &s.caches, Rights: s.rights.of(kind.GVK().GroupKind()), Wake: wake.call}

	workers := s.options.MaxConcurrentReconciles
	if kind.MaxConcurrentReconciles != nil {
		workers = *kind.MaxConcurrentReconciles
	}
	logger := s.manager.GetLogger().WithValues("kind", kind.Kind)
	name := strings.ToLower(kind.GVK().GroupKind().String())
	c, err := controller.New(name, s.manager, controller.Options{
		Reconciler:              afterDefinitions{Reconciler: reconciler, tried: s.defined},
		MaxConcurrentReconciles: workers,
		EnableWarmup:            new(true),
		LogConstructor: func(request *ctrlreconcile.Request) logr.Logger {
			if request == nil {
				return logger
			}
			return logger.WithValues("namespace", request.Namespace, "name", request.Name)
		},
	})
	if err != nil {
		return err
	}
	if err := c.Watch(source.Func(wake.listen)); err != nil {
		return err
	}
	s.controller, s.reconciler = c, reconciler
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serving = append(s.serving, reconciler)
	reconciler.PauseRollout(s.pauses.get(s.definitionOf(kind)))
	return nil
}

// listen calls for passes over the custom resources that a cache holds. Not by a
// source.Kind, which looks each tenth of a second whether all have been told of:
// the cache is full already, and a pass needs no more.
func (s *service) listen(ctx context.Context, customResources cache.Cache) error {
	informer, err := customResources.GetInformer(ctx, s.object, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	return s.controller.Watch(&source.Informer{Informer: informer, Handler: &enqueue{}, Predicates: []predicate.Predicate{heeding(s.reconciler)}})
}

// wakeup calls for passes from outside the watches, when an action has ended.
type wakeup struct {
	mu    sync.Mutex
	queue queue
}

// listen is a source that keeps the controller's queue.
func (w *wakeup) listen(_ context.Context, queue queue) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = queue
	return nil
}

func (w *wakeup) call(key types.NamespacedName, after time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue != nil {
		add(w.queue, ctrl.Request{NamespacedName: key}, wakePriority, after)
	}
}
