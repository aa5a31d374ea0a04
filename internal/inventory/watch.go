package inventory

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watch is the watch of one kind, with one informer for each cache.
type watch struct {
	// starting prevents concurrent attempts to start the watch.
	starting sync.Mutex

	// The following fields are guarded by the lock of Watches.

	gvk    schema.GroupVersionKind
	owners map[types.UID]struct{}
	// needed is true once an action has applied, or is about to apply, objects of the kind.
	needed bool
	// resource is empty until the watch has started in some namespace.
	resource schema.GroupVersionResource
	// root is true if objects of the kind are cluster-scoped.
	root bool
	// synced has a checker for each cache with a started watch. The checker reports
	// whether the cache has received all objects.
	synced map[namespaceCache]toolscache.DoneChecker
	// failed holds the failures by namespace, and under startFailure the failure of the
	// last attempt to start the watch.
	failed map[string]failure
	// startedAt is the time of the last attempt to start the watch; attempts counts the
	// consecutive failures.
	startedAt time.Time
	attempts  int
	retry     *time.Timer
	drop      *time.Timer
	// updated is closed and replaced when the watch starts, fails or recovers.
	updated chan struct{}
}

func newWatch(gvk schema.GroupVersionKind) *watch {
	return &watch{
		gvk: gvk, owners: map[types.UID]struct{}{}, synced: map[namespaceCache]toolscache.DoneChecker{},
		failed: map[string]failure{}, updated: make(chan struct{}),
	}
}

// isDue reports whether the watch must be started in some namespace now. The caller holds
// the lock.
func (w *Watches) isDue(known *watch) bool {
	return len(w.missing(known)) > 0 && (known.attempts == 0 || time.Since(known.startedAt) >= retryAtLeast)
}

// start starts a watch in the namespaces where it is not running, and schedules a retry if
// that fails. It may send requests, so callers run it in a goroutine.
func (w *Watches) start(watched *watch) {
	watched.starting.Lock()
	defer watched.starting.Unlock()
	w.mu.Lock()
	gvk, missing, due, needed := watched.gvk, w.missing(watched), w.isDue(watched), watched.needed
	w.mu.Unlock()
	if !due {
		return
	}
	var mapping *meta.RESTMapping
	err := errNoKind
	// The resource of a kind that no action needs is looked up only if the API server
	// may serve the kind.
	if needed || w.MayServe == nil || w.MayServe(gvk) {
		if mapping, err = w.mapping(gvk); meta.IsNoMatchError(err) {
			// Another version may be served.
			mapping, err = w.mapping(schema.GroupVersionKind{Group: gvk.Group, Kind: gvk.Kind})
		}
	}
	if err == nil {
		gvk = mapping.GroupVersionKind
	}
	checkers := map[namespaceCache]toolscache.DoneChecker{}
	for i, at := range missing {
		if err != nil || i > 0 && mapping.Scope.Name() == meta.RESTScopeNameRoot {
			break
		}
		var checker toolscache.DoneChecker
		if checker, err = StartInformer(context.Background(), at.cache, w.index.HealthConfig.watchedType(gvk), w.index.handler()); err == nil {
			checkers[at] = checker
		}
	}
	w.mu.Lock()
	for at, checker := range checkers {
		watched.gvk, watched.resource, watched.root = gvk, mapping.Resource, mapping.Scope.Name() == meta.RESTScopeNameRoot
		watched.synced[at] = checker
	}
	watched.startedAt = time.Now()
	if meta.IsNoMatchError(err) {
		err = errNoKind
	}
	if err == nil {
		watched.attempts = 0
	} else {
		w.retryLater(watched)
	}
	w.mu.Unlock()
	w.setFailure(watched, startFailure, err)
}

// errNoKind reports a kind that the API server does not serve.
var errNoKind = errors.New("the API server does not serve this kind: install its CustomResourceDefinition, or remove the objects from the chart")

// missing returns the caches where a watch is not running. The caller holds the lock.
func (w *Watches) missing(watched *watch) []namespaceCache {
	var missing []namespaceCache
	for _, at := range w.caches {
		if watched.root && len(watched.synced) > 0 {
			break
		}
		if watched.synced[at] == nil {
			missing = append(missing, at)
		}
	}
	return missing
}

// StartInformer starts the watch of the objects of a type in a cache. The checker is done when the
// handler has received all existing objects.
func StartInformer(ctx context.Context, in cache.Cache, object client.Object, handler toolscache.ResourceEventHandler) (toolscache.DoneChecker, error) {
	informer, err := in.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, err
	}
	registration, err := informer.AddEventHandler(handler)
	if err != nil {
		return nil, err
	}
	return registration.HasSyncedChecker(), nil
}

// wait waits until a watch has received all objects of a namespace, or all cluster-scoped
// objects. Other namespaces are ignored, because the operator may have no permission
// there. It returns the reason why the kind cannot be watched, or "". If failFast is true,
// it returns at the first failure, even if the failure may be transient.
func (w *Watches) wait(ctx context.Context, namespace string, watched *watch, failFast bool) (why string) {
	for {
		w.mu.Lock()
		var pending toolscache.DoneChecker
		for at, synced := range watched.synced {
			if (at.namespace == namespace || at.namespace == "" || len(watched.synced) == 1) && !toolscache.IsDone(synced) {
				pending = synced
			}
		}
		failed := watched.failure(namespace)
		begins := pending == nil && failed.why == "" && len(w.missing(watched)) > 0
		news := watched.updated
		w.mu.Unlock()
		if failed.reported || failed.why != "" && failFast {
			return failed.why
		}
		if pending == nil && !begins {
			return ""
		}
		var synced <-chan struct{}
		if pending != nil {
			synced = pending.Done()
		}
		select {
		case <-synced:
		case <-news:
		case <-ctx.Done():
			return cmp.Or(failed.why, "not listed by the API server yet; the operator continues to wait")
		}
	}
}

// watchedTypes is a scheme of its own, because other packages such as Helm's add types to
// the scheme of client-go.
var watchedTypes = func() *runtime.Scheme {
	types := runtime.NewScheme()
	// AddToScheme fails only if a type is added twice.
	if err := clientgoscheme.AddToScheme(types); err != nil {
		panic(err)
	}
	return types
}()

// watchedType returns the type for the watch of a kind: metadata only, unless the
// health of the object depends on more. Built-in kinds are watched by their Go type, and
// thus as protobuf, which costs a fraction of JSON. Kinds with a health rule are watched
// as unstructured, because the rule may read any field by its JSON name.
func (j HealthConfig) watchedType(gvk schema.GroupVersionKind) client.Object {
	types := possibleTypes(gvk)
	switch {
	case !j.watchedWhole(gvk.GroupKind()):
		return types[0]
	case j.hasRule(gvk.GroupKind()):
		return types[1]
	default:
		return types[len(types)-1]
	}
}

// possibleTypes returns the types for the watch of a kind that are possible with any rules:
// metadata, unstructured and, for built-in kinds, the Go type.
func possibleTypes(gvk schema.GroupVersionKind) []client.Object {
	metadata, whole := &metav1.PartialObjectMetadata{}, &unstructured.Unstructured{}
	metadata.SetGroupVersionKind(gvk)
	whole.SetGroupVersionKind(gvk)
	types := []client.Object{metadata, whole}
	if typed, err := watchedTypes.New(gvk); err == nil {
		if object, ok := typed.(client.Object); ok {
			types = append(types, object)
		}
	}
	return types
}

// Options completes the options of the cache of a namespace; the empty name means all
// namespaces. The cache must use the scheme of this package, and Watches must observe the
// responses to its requests to learn which kinds cannot be watched.
func (w *Watches) Options(namespace string, options cache.Options) cache.Options {
	options.Scheme = watchedTypes
	options.DefaultTransform = w.index.HealthConfig.transform
	if options.HTTPClient != nil {
		options.HTTPClient = w.observeResponses(namespace, options.HTTPClient)
	}
	return options
}
