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
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/chartwright/chartwright/internal/annotations"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/reconcile"
)

var zeroDuration time.Duration

// start gives a kind a cache and a controller of its own. The controller joins
// when the cache is full; k.starting counts it until then.
func (k *kinds) start(ctx context.Context, kind catalog.Kind) error {
	options := k.cacheOptions()
	options.DefaultNamespaces = k.options.cacheNamespaces()
	options.DefaultTransform = compactCR
	// A pass copies what it changes.
	options.DefaultUnsafeDisableDeepCopy = new(true)
	if kind.Selector != nil {
		selector, err := metav1.LabelSelectorAsSelector(kind.Selector)
		if err != nil {
			return fmt.Errorf("selector: %w", err)
		}
		options.DefaultLabelSelector = selector
	}
	customResources, err := cache.New(k.manager.GetConfig(), options)
	if err != nil {
		return err
	}
	if err := k.manager.Add(standbyCache{customResources}); err != nil {
		return err
	}
	k.starting.Add(1)
	go func() {
		logger := k.manager.GetLogger().WithValues("kind", kind.Kind, "group", kind.Group, "version", kind.Version)
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(kind.GVK())
		if _, err := customResources.GetInformer(ctx, object); ctx.Err() != nil {
			return
		} else if err != nil {
			logger.Error(err, "kind not watched")
			return
		}
		k.watchObserved(ctx, kind)
		if err := k.addController(kind, customResources, object); err != nil {
			logger.Error(err, "kind not served")
			return
		}
		k.starting.Add(-1)
		logger.Info("serving kind", "chart", kind.Chart.Name(), "chartVersion", kind.Chart.Version())
	}()
	return nil
}

func (k *kinds) addController(kind catalog.Kind, customResources cache.Cache, object *unstructured.Unstructured) error {
	wake := &wakeup{}
	reconciler := &reconcile.Reconciler{Shared: k.shared, Kind: kind, Reader: customResources, Wake: wake.call}

	workers := k.options.MaxConcurrentReconciles
	if kind.MaxConcurrentReconciles != nil {
		workers = *kind.MaxConcurrentReconciles
	}
	logger := k.manager.GetLogger().WithValues("kind", kind.Kind)
	name := strings.ToLower(kind.GVK().GroupKind().String())
	c, err := controller.New(name, k.manager, controller.Options{
		Reconciler:              reconciler,
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
	if err := c.Watch(source.Kind[client.Object](customResources, object, &handler.EnqueueRequestForObject{}, heeding(reconciler))); err != nil {
		return err
	}
	if err := c.Watch(source.Func(wake.listen)); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.serving = append(k.serving, reconciler)
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
		len(before.GetFinalizers()) != len(after.GetFinalizers()) ||
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
	queue workqueue.TypedRateLimitingInterface[ctrl.Request]
}

// listen is a source that keeps the controller's queue.
func (w *wakeup) listen(_ context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = queue
	return nil
}

func (w *wakeup) call(key types.NamespacedName, after time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue != nil {
		w.queue.AddAfter(ctrl.Request{NamespacedName: key}, after)
	}
}
