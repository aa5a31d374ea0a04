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
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/inputs/observed"
	"github.com/chartwright/chartwright/internal/reconcile"
)

// observing holds the watches of what status fields speak of. One that several
// kinds need is one.
type observing struct {
	store *observed.Store

	mu sync.Mutex
	// watches are those that have begun. The channel is closed when a watch has
	// seen all that is there, or it is known that it will not.
	watches map[observed.Watch]<-chan struct{}
	// unknown are those whose kind the server does not have.
	unknown map[observed.Watch]bool
}

func (k *kinds) newObserving() *observing {
	return &observing{
		store:   observed.NewStore(k.observedChanged),
		watches: map[observed.Watch]<-chan struct{}{},
		unknown: map[observed.Watch]bool{},
	}
}

// watchObserved watches what the status of a kind speaks of and waits until all
// is known that can be, so that the first passes write nothing that the next
// would take back. What cannot be watched holds up nobody.
func (k *kinds) watchObserved(ctx context.Context, kind catalog.Kind) {
	within := time.After(observedWithin)
	for _, o := range kind.Observes {
		select {
		case <-k.observing.begun(o.Watch, func() <-chan struct{} { return k.observe(ctx, o.Watch) }):
		case <-within:
			return
		case <-ctx.Done():
		}
	}
}

// observedWithin is how long a kind waits for the objects that its status speaks
// of. The API server may never list them.
const observedWithin = 5 * time.Second

// watchNewlyKnown begins the watches that had no kind to watch. It is called
// when a definition came.
func (k *kinds) watchNewlyKnown(ctx context.Context) {
	k.observing.mu.Lock()
	defer k.observing.mu.Unlock()
	for _, w := range slices.Collect(maps.Keys(k.observing.unknown)) {
		delete(k.observing.unknown, w)
		k.observing.watches[w] = k.observe(ctx, w)
	}
}

// begun returns the channel of a watch, which begins if nobody needed it yet.
func (o *observing) begun(w observed.Watch, begin func() <-chan struct{}) <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, known := o.watches[w]; !known {
		o.watches[w] = begin()
	}
	return o.watches[w]
}

// observe begins a watch, beside its caller: the API server may be slow to say
// what the resource is.
func (k *kinds) observe(ctx context.Context, w observed.Watch) <-chan struct{} {
	settled := make(chan struct{})
	settle := sync.OnceFunc(func() { close(settled) })
	fail := func(why string) {
		if k.observing.store.Failed(w, why) {
			k.manager.GetLogger().Info("objects that a status speaks of cannot be watched", "kind", w.Kind, "group", w.Group, "version", w.Version, "why", why)
		}
		settle()
	}
	go func() {
		mapping, err := k.manager.GetRESTMapper().RESTMapping(w.GroupKind(), w.Version)
		switch {
		case err == nil && mapping.Scope.Name() == meta.RESTScopeNameNamespace:
			err = k.observeWith(ctx, w, settle, fail)
		case err == nil:
			err = errors.New("objects of the release's namespace can be observed, and these have none")
		default:
			k.observing.mu.Lock()
			k.observing.unknown[w] = true
			k.observing.mu.Unlock()
		}
		if err != nil {
			fail(err.Error())
		}
	}()
	return settled
}

func (k *kinds) observeWith(ctx context.Context, w observed.Watch, settle func(), fail func(string)) error {
	selector, err := w.Selector()
	if err != nil {
		return err
	}
	var failed atomic.Bool
	go func() {
		k.eachArea(ctx, func(a *area) {
			if err := k.observeIn(ctx, a, w, selector, fail); err != nil && ctx.Err() == nil {
				failed.Store(true)
				fail(err.Error())
			}
		})
		if !failed.Load() && ctx.Err() == nil {
			k.observing.store.Synced(w)
		}
		settle()
	}()
	return nil
}

// observeIn watches in one area, and returns when all is seen that is there.
func (k *kinds) observeIn(ctx context.Context, a *area, w observed.Watch, selector labels.Selector, fail func(string)) error {
	options := k.cacheOptions()
	a.limit(&options)
	options.DefaultLabelSelector = selector
	options.DefaultTransform = observed.Compact
	options.DefaultWatchErrorHandler = func(ctx context.Context, reflector *toolscache.Reflector, err error) {
		toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
		// Other errors are those of a server that is away, and pass.
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
			fail("give the operator the right to get, list and watch them")
		}
	}
	informers, err := cache.New(k.manager.GetConfig(), options)
	if err != nil {
		return err
	}
	if err := k.manager.Add(standbyCache{Cache: informers}); err != nil {
		return err
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(w.GroupVersionKind)
	informer, err := informers.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	registration, err := informer.AddEventHandler(k.observing.store.Handler(w))
	if err != nil {
		return err
	}
	select {
	case <-registration.HasSyncedChecker().Done():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// observedChanged calls for a pass over the custom resource that looks at an
// object that changed.
func (k *kinds) observedChanged(user types.UID) {
	k.each(func(r *reconcile.Reconciler) { r.ObservedChanged(user) })
}
