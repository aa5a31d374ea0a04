package operator

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/chartwright/chartwright/internal/operator/crdwatch"
	"github.com/chartwright/chartwright/internal/reconcile"
)

// startController starts the controller of the kind, which reads from the caches, until the
// context ends.
func (s *servedKind) startController(ctx context.Context) error {
	k := s.manager
	reconciler := &reconcile.Reconciler{
		Shared: k.shared, Kind: s.kind, Reader: &s.caches, Permissions: k.permissions.Kind(s.gk),
		Wake: s.state.wake.call, Until: ctx, DeletionOnly: s.removed, Broken: s.broken,
	}

	workers := k.options.MaxConcurrentReconciles
	if s.kind.MaxConcurrentReconciles != nil {
		workers = *s.kind.MaxConcurrentReconciles
	}
	logger := k.logger.WithValues("kind", s.kind.Kind)
	c, err := controller.NewUnmanaged(strings.ToLower(s.gk.String()), controller.Options{
		Reconciler:              afterCRDs(reconciler, s.crdTried),
		MaxConcurrentReconciles: workers,
		EnableWarmup:            new(true),
		// The next controller of the kind has the same name.
		SkipNameValidation: new(true),
		Logger:             k.logger,
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
	if err := c.Watch(source.Func(s.state.wake.listen)); err != nil {
		return err
	}
	s.controller, s.reconciler = c, reconciler
	crdName := crdwatch.Name(k.manager.GetRESTMapper(), s.kind)
	k.reconcilers.add(reconciler, func() { reconciler.PauseRollout(k.crds.Paused(crdName)) })
	s.tasks.Go(func() {
		if err := runController(ctx, c, k.manager.Elected()); err != nil {
			s.logger.Error(err, "controller ended")
			// The kind starts again.
			s.stop()
		}
	})
	return nil
}

// runController runs a controller until the context ends, and waits for its
// reconciliations. A standby fills the queue, and reconciles when it becomes the leader.
func runController(ctx context.Context, c controller.Controller, elected <-chan struct{}) error {
	if standby, ok := c.(interface{ Warmup(context.Context) error }); ok {
		if err := standby.Warmup(ctx); err != nil {
			return err
		}
	}
	if !receive(ctx, elected) {
		return nil
	}
	return c.Start(ctx)
}

// listen enqueues the custom resources of a filled cache. It does not use source.Kind,
// which polls until the handlers have synced.
func (s *servedKind) listen(ctx context.Context, filled cache.Cache) error {
	informer, err := filled.GetInformer(ctx, s.object, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	changes := []predicate.Predicate{relevantChanges(s.reconciler)}
	if s.removed {
		changes = []predicate.Predicate{signalChanges(s.changed), changes[0]}
	}
	return s.controller.Watch(&source.Informer{Informer: informer, Handler: &enqueue{}, Predicates: changes})
}

// afterCRDs delays reconciliations until the CRDs were installed, or installing them
// failed: the API server would drop status fields that an old CRD lacks.
func afterCRDs(reconciler ctrlreconcile.Reconciler, tried <-chan struct{}) ctrlreconcile.Func {
	return func(ctx context.Context, request ctrlreconcile.Request) (ctrlreconcile.Result, error) {
		if !receive(ctx, tried) {
			return ctrlreconcile.Result{}, ctx.Err()
		}
		return reconciler.Reconcile(ctx, request)
	}
}

// Priorities of reconciliations. New and deleted custom resources have 0, and those that
// exist at start less. Edits precede all others, and a completed action is reported before
// other actions start.
const (
	editPriority = 10
	wakePriority = 5
)

type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// add enqueues a reconciliation with a priority, if the queue supports priorities.
func add(to queue, request ctrl.Request, priority int, after time.Duration) {
	if ordered, ok := to.(priorityqueue.PriorityQueue[ctrl.Request]); ok {
		ordered.AddWithOpts(priorityqueue.AddOpts{Priority: &priority, After: after}, request)
		return
	}
	to.AddAfter(request, after)
}

// enqueue enqueues a custom resource that has changed.
type enqueue struct {
	handler.EnqueueRequestForObject
}

// Update enqueues an edit with the priority of edits.
func (e *enqueue) Update(ctx context.Context, change event.UpdateEvent, to queue) {
	if change.ObjectNew == nil || !change.ObjectNew.GetDeletionTimestamp().IsZero() {
		e.EnqueueRequestForObject.Update(ctx, change, to)
		return
	}
	add(to, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(change.ObjectNew)}, editPriority, 0)
}

// wakeup enqueues reconciliations without an event, for example after an action.
type wakeup struct {
	mu    sync.Mutex
	queue queue
}

// listen is a source that stores the controller's queue.
func (w *wakeup) listen(_ context.Context, queue queue) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = queue
	return nil
}

// clear drops the queue of a controller that has ended.
func (w *wakeup) clear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = nil
}

func (w *wakeup) call(key types.NamespacedName, after time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue != nil {
		add(w.queue, ctrl.Request{NamespacedName: key}, wakePriority, after)
	}
}

// caches reads the custom resources of a kind from one cache per namespace, or from one
// cache for all namespaces with the key "". The zero value is empty.
type caches struct {
	mu          sync.RWMutex
	byNamespace map[string]cache.Cache
}

var _ client.Reader = &caches{}

func (c *caches) put(namespace string, filled cache.Cache) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byNamespace == nil {
		c.byNamespace = map[string]cache.Cache{}
	}
	c.byNamespace[namespace] = filled
}

// Get reads a custom resource. In a namespace without a cache it returns a NotFound error.
func (c *caches) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	c.mu.RLock()
	from, ok := c.byNamespace[key.Namespace]
	if !ok {
		from, ok = c.byNamespace[""]
	}
	c.mu.RUnlock()
	if !ok {
		gvk := object.GetObjectKind().GroupVersionKind()
		return apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, key.Name)
	}
	return from.Get(ctx, key, object, options...)
}

// List reads the custom resources of all caches.
func (c *caches) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var all []runtime.Object
	for _, from := range c.byNamespace {
		if err := from.List(ctx, list, options...); err != nil {
			return err
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			return err
		}
		all = append(all, items...)
	}
	return meta.SetList(list, all)
}
