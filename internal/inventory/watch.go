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

// watch is the watch of one kind.
type watch struct {
	// starting lets one attempt to begin at a time.
	starting sync.Mutex

	// The lock of Watches guards what follows.

	gvk    schema.GroupVersionKind
	owners map[types.UID]struct{}
	// needed: an action has applied objects of the kind, or is about to.
	needed bool
	// resource is empty until the watch has begun in some namespace.
	resource schema.GroupVersionResource
	// root reports that objects of the kind have no namespace.
	root bool
	// synced reports, for each cache with a watch, whether the watch has received
	// all objects.
	synced map[namespaceCache]toolscache.DoneChecker
	// failed holds the failures by namespace, and under beginning that of the last
	// attempt to begin.
	failed map[string]failure
	// startedAt is when that attempt was made, and attempts counts those that failed
	// in a row.
	startedAt time.Time
	attempts  int
	retry     *time.Timer
	drop      *time.Timer
	// updated is closed and replaced when a watch begins, fails or recovers.
	updated chan struct{}
}

func newWatch(gvk schema.GroupVersionKind) *watch {
	return &watch{
		gvk: gvk, owners: map[types.UID]struct{}{}, synced: map[namespaceCache]toolscache.DoneChecker{},
		failed: map[string]failure{}, updated: make(chan struct{}),
	}
}

// isDue reports whether a watch is to begin somewhere. It is called under the
// lock.
func (w *Watches) isDue(known *watch) bool {
	return len(w.missing(known)) > 0 && (known.attempts == 0 || w.now().Sub(known.startedAt) >= retryAtLeast)
}

// start begins a watch in the namespaces in which it has not begun. A failure is
// noted, and tried again later. Since the API server may be slow to say what the
// kind's resource is, begin runs beside its callers.
func (w *Watches) start(begun *watch) {
	begun.starting.Lock()
	defer begun.starting.Unlock()
	w.mu.Lock()
	gvk, missing, due, needed := begun.gvk, w.missing(begun), w.isDue(begun), begun.needed
	w.mu.Unlock()
	if !due {
		return
	}
	var mapping *meta.RESTMapping
	err := errNoKind
	// The resource of a kind that no action needs is looked up only if the API server
	// may serve it.
	if needed || w.MayServe == nil || w.MayServe(gvk) {
		mapping, err = w.mapping(gvk)
	}
	checkers := map[namespaceCache]toolscache.DoneChecker{}
	for i, at := range missing {
		if err != nil || i > 0 && mapping.Scope.Name() == meta.RESTScopeNameRoot {
			break
		}
		var checker toolscache.DoneChecker
		if checker, err = w.startInformer(at, gvk); err == nil {
			checkers[at] = checker
		}
	}
	w.mu.Lock()
	for at, checker := range checkers {
		begun.resource, begun.root = mapping.Resource, mapping.Scope.Name() == meta.RESTScopeNameRoot
		begun.synced[at] = checker
	}
	begun.startedAt = w.now()
	if meta.IsNoMatchError(err) {
		err = errNoKind
	}
	if err == nil {
		begun.attempts = 0
	} else {
		w.retryLater(begun)
	}
	w.mu.Unlock()
	w.setFailure(begun, startFailure, err)
}

// errNoKind marks a kind that the API server does not serve.
var errNoKind = errors.New("the API server has no such kind: install its CustomResourceDefinition, or remove the objects from the chart")

// missing returns the namespaces in which a watch is to begin. It is called under
// the lock.
func (w *Watches) missing(begun *watch) []namespaceCache {
	var missing []namespaceCache
	for _, at := range w.caches {
		if begun.root && len(begun.synced) > 0 {
			break
		}
		if begun.synced[at] == nil {
			missing = append(missing, at)
		}
	}
	return missing
}

// startInformer begins the watch of a kind in a namespace.
func (w *Watches) startInformer(at namespaceCache, gvk schema.GroupVersionKind) (toolscache.DoneChecker, error) {
	informer, err := at.cache.GetInformer(context.Background(), w.index.HealthConfig.watchedType(gvk), cache.BlockUntilSynced(false))
	if err != nil {
		return nil, err
	}
	registration, err := informer.AddEventHandler(w.index.handler())
	if err != nil {
		return nil, err
	}
	return registration.HasSyncedChecker(), nil
}

// wait waits until a watch has received all objects of a namespace, and all that
// have none: another namespace may be closed to the operator. It returns why the
// kind cannot be watched, empty where it is. With hasty, the first failure ends
// the wait.
func (w *Watches) wait(ctx context.Context, namespace string, begun *watch, hasty bool) (why string) {
	for {
		w.mu.Lock()
		var pending toolscache.DoneChecker
		for at, synced := range begun.synced {
			if (at.namespace == namespace || at.namespace == "" || len(begun.synced) == 1) && !toolscache.IsDone(synced) {
				pending = synced
			}
		}
		failed := begun.failure(namespace)
		begins := pending == nil && failed.why == "" && len(w.missing(begun)) > 0
		news := begun.updated
		w.mu.Unlock()
		if failed.reported || failed.why != "" && hasty {
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
			return cmp.Or(failed.why, "the API server has not listed them yet; the operator waits on")
		}
	}
}

// watchedTypes are the types by which kinds are watched. It is a scheme of this
// package's own, since other packages, such as Helm's, add types to client-go's.
var watchedTypes = func() *runtime.Scheme {
	types := runtime.NewScheme()
	// It fails where a type is added twice.
	if err := clientgoscheme.AddToScheme(types); err != nil {
		panic(err)
	}
	return types
}()

// watchedType returns how objects of a kind are watched: whole, where their health is
// read, and by their metadata otherwise. Kubernetes' own kinds are watched by
// their types, and so by protobuf, which costs a fraction of JSON. A health rule
// may read any field, under the name that it has in JSON.
func (j HealthConfig) watchedType(gvk schema.GroupVersionKind) client.Object {
	if !j.watchedWhole(gvk.GroupKind()) {
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(gvk)
		return object
	}
	if typed, err := watchedTypes.New(gvk); err == nil && !j.hasRule(gvk.GroupKind()) {
		if object, ok := typed.(client.Object); ok {
			return object
		}
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gvk)
	return object
}

// Options completes the options of the cache of a namespace, empty for all. The
// cache knows the types by which kinds are watched, and no others, and Watches
// learns from the answers to its requests which kinds cannot be watched.
func (w *Watches) Options(namespace string, options cache.Options) cache.Options {
	options.Scheme = watchedTypes
	options.DefaultTransform = w.index.HealthConfig.transform
	if options.HTTPClient != nil {
		options.HTTPClient = w.observeResponses(namespace, options.HTTPClient)
	}
	return options
}
