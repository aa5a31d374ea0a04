package operator

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/chartwright/chartwright/internal/annotations"
	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/reconcile"
)

var zeroDuration time.Duration

// start gives a kind a cache and a controller of its own. The controller joins
// when the cache is full; until then the kind is starting. One that may not be
// watched holds up nobody: it starts anew when the operator gets other rights.
func (k *kinds) start(ctx context.Context, kind catalog.Kind) {
	gk := kind.GVK().GroupKind()
	changed := make(chan struct{}, 1)
	k.forbidden[gk] = changed
	k.board.set(gk, stateStarting, "")
	go func() {
		logger := k.manager.GetLogger().WithValues("kind", kind.Kind, "group", kind.Group, "version", kind.Version)
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(kind.GVK())
		customResources, err := k.fill(ctx, kind, object, changed)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			logger.Error(err, "kind not watched")
			k.board.set(gk, stateStarting, err.Error())
			return
		}
		k.watchObserved(ctx, kind)
		if err := k.addController(kind, customResources, object); err != nil {
			logger.Error(err, "kind not served")
			k.board.set(gk, stateStarting, err.Error())
			return
		}
		k.board.set(gk, stateServing, "")
		logger.Info("serving kind", "chart", kind.Chart.Name(), "chartVersion", kind.Chart.Version())
	}()
}

// fill returns a cache that holds the kind's custom resources. A try that was
// refused goes on by itself, ever more rarely, and makes room for another when
// the operator's rights have changed.
func (k *kinds) fill(ctx context.Context, kind catalog.Kind, object client.Object, changed <-chan struct{}) (cache.Cache, error) {
	for {
		stop, refused := make(chan struct{}), make(chan struct{})
		customResources, err := k.newCache(kind, stop, sync.OnceFunc(func() { close(refused) }))
		if err != nil {
			return nil, err
		}
		informer, err := customResources.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, err
		}
		synced := make(chan struct{})
		go func() {
			if toolscache.WaitForCacheSync(stop, informer.HasSynced) {
				close(synced)
			}
		}()
		select {
		case <-synced:
			return customResources, nil
		case <-refused:
			k.board.set(kind.GVK().GroupKind(), stateForbidden, "")
			k.rights.ask()
		case <-ctx.Done():
		}
		select {
		case <-synced:
			return customResources, nil
		case <-changed:
			close(stop)
			k.board.set(kind.GVK().GroupKind(), stateStarting, "")
		case <-ctx.Done():
			close(stop)
			return nil, ctx.Err()
		}
	}
}

// newCache returns a cache for the custom resources of a kind, which ends when it
// is stopped.
func (k *kinds) newCache(kind catalog.Kind, stop <-chan struct{}, refused func()) (cache.Cache, error) {
	options := k.cacheOptions()
	options.DefaultNamespaces = k.options.cacheNamespaces()
	options.DefaultTransform = compactCR
	options.DefaultWatchErrorHandler = onRefusal(func() {
		refused()
		k.rights.ask()
	})
	// A pass copies what it changes.
	options.DefaultUnsafeDisableDeepCopy = new(true)
	if kind.Selector != nil {
		selector, err := metav1.LabelSelectorAsSelector(kind.Selector)
		if err != nil {
			return nil, fmt.Errorf("selector: %w", err)
		}
		options.DefaultLabelSelector = selector
	}
	customResources, err := cache.New(k.manager.GetConfig(), options)
	if err != nil {
		return nil, err
	}
	return customResources, k.manager.Add(standbyCache{Cache: customResources, stop: stop})
}

func (k *kinds) addController(kind catalog.Kind, customResources cache.Cache, object *unstructured.Unstructured) error {
	wake := &wakeup{}
	reconciler := &reconcile.Reconciler{Shared: k.shared, Kind: kind, Reader: customResources, Rights: k.rights.of(kind.GVK().GroupKind()), Wake: wake.call}

	workers := k.options.MaxConcurrentReconciles
	if kind.MaxConcurrentReconciles != nil {
		workers = *kind.MaxConcurrentReconciles
	}
	logger := k.manager.GetLogger().WithValues("kind", kind.Kind)
	name := strings.ToLower(kind.GVK().GroupKind().String())
	c, err := controller.New(name, k.manager, controller.Options{
		Reconciler:              afterDefinitions{Reconciler: reconciler, tried: k.defined},
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
	if err := c.Watch(source.Kind[client.Object](customResources, object, &enqueue{}, heeding(reconciler))); err != nil {
		return err
	}
	if err := c.Watch(source.Func(wake.listen)); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.serving = append(k.serving, reconciler)
	reconciler.PauseRollout(k.pauses.get(k.definitionOf(kind)))
	return nil
}

// heeding lets through the changes of a custom resource that a pass could act
// on. Its status is none of them, or every report would call for another pass.
// The reconciler sees them all, so that it can forget.
func heeding(r *reconcile.Reconciler) predicate.Funcs {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			r.Seen(e.ObjectNew)
			return matters(e.ObjectOld, e.ObjectNew)
		},
		DeleteFunc: func(e event.DeleteEvent) bool {
			r.Gone(e.Object)
			return false
		},
	}
}

func matters(before, after client.Object) bool {
	return before.GetGeneration() != after.GetGeneration() ||
		before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero() ||
		!sameWords(before.GetAnnotations(), after.GetAnnotations()) ||
		controllerutil.ContainsFinalizer(before, api.Finalizer) != controllerutil.ContainsFinalizer(after, api.Finalizer) ||
		hasStatus(before) && !hasStatus(after)
}

// hasStatus tells whether anything is reported: what somebody cleared is told
// anew.
func hasStatus(object client.Object) bool {
	cr, ok := object.(*unstructured.Unstructured)
	if !ok {
		return false
	}
	status, _ := cr.Object["status"].(map[string]any)
	return len(status) > 0
}

// sameWords tells whether the annotations that are meant for us are equal.
func sameWords(a, b map[string]string) bool {
	ours := func(from, in map[string]string) bool {
		for key, value := range from {
			if other, ok := in[key]; annotations.Heeded(key) && (!ok || other != value) {
				return false
			}
		}
		return true
	}
	return ours(a, b) && ours(b, a)
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
