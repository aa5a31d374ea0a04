package operator

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/chartwright/chartwright/internal/release"
)

var (
	secretGVK = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	crdGVK    = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
)

// watchRecords feeds the index of release records and returns when it holds
// all that are stored in the area. Records of every owner are watched, since a
// name that somebody else's release has is taken.
func (k *kinds) watchRecords(ctx context.Context, a *area) error {
	options := k.cacheOptions()
	a.limit(&options)
	options.DefaultLabelSelector = labels.SelectorFromSet(labels.Set{release.LabelOwner: release.OwnerHelm})
	options.DefaultFieldSelector = fields.OneTermEqualSelector("type", release.SecretType)
	options.DefaultTransform = release.Compact
	refused := sync.OnceFunc(func() { close(a.closed) })
	for {
		try, stop := context.WithCancel(ctx)
		w, err := k.watch(try, secretGVK, options, k.shared.Index.Handler())
		if err != nil {
			stop()
			return err
		}
		select {
		case <-w.refused:
			refused()
			k.rights.ask()
		case <-w.synced:
		case <-ctx.Done():
		}
		// The try goes on by itself, ever more rarely, and makes room for another
		// when the operator's rights have changed.
		select {
		case <-w.synced:
			context.AfterFunc(ctx, stop)
			return nil
		case <-a.again:
			stop()
		case <-ctx.Done():
			stop()
			return ctx.Err()
		}
	}
}

// watching is the beginning of a watch.
type watching struct {
	// synced is closed when the handler has seen all that is there, and refused
	// when the API server has not allowed the watch. It may do so later.
	synced, refused <-chan struct{}
}

// await waits until a watch has begun, or it is known that it may not, of which
// it tells.
func (k *kinds) await(ctx context.Context, w watching, refused func()) error {
	select {
	case <-w.synced:
		return nil
	case <-w.refused:
		refused()
		k.rights.ask()
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// watch starts an informer on the metadata of a kind, until the context ends.
func (k *kinds) watch(ctx context.Context, gvk schema.GroupVersionKind, options cache.Options, handler toolscache.ResourceEventHandler) (watching, error) {
	refused := make(chan struct{})
	options.DefaultWatchErrorHandler = onRefusal(sync.OnceFunc(func() { close(refused) }))
	informers, err := cache.New(k.manager.GetConfig(), options)
	if err != nil {
		return watching{}, fmt.Errorf("watch %s: %w", gvk.Kind, err)
	}
	if err := k.manager.Add(standbyCache{Cache: informers, stop: ctx.Done()}); err != nil {
		return watching{}, fmt.Errorf("watch %s: %w", gvk.Kind, err)
	}
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(gvk)
	informer, err := informers.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return watching{}, fmt.Errorf("watch %s: %w", gvk.Kind, err)
	}
	registration, err := informer.AddEventHandler(handler)
	if err != nil {
		return watching{}, fmt.Errorf("watch %s: %w", gvk.Kind, err)
	}
	return watching{synced: registration.HasSyncedChecker().Done(), refused: refused}, nil
}

// onRefusal calls do when a watch is not allowed. Other errors are those of a
// server that is away, and pass.
func onRefusal(do func()) toolscache.WatchErrorHandlerWithContext {
	return func(ctx context.Context, reflector *toolscache.Reflector, err error) {
		toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
		if apierrors.IsForbidden(err) {
			do()
		}
	}
}

// standbyCache starts without the lease. Caches of single namespaces do not say
// so themselves, and a standby would neither be ready nor take over warm.
type standbyCache struct {
	cache.Cache
	// stop ends the cache before its context does; nil is never.
	stop <-chan struct{}
}

// Start fills the cache until the context ends, or it is stopped.
func (s standbyCache) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-s.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	return s.Cache.Start(ctx)
}

// NeedLeaderElection answers no: watching is no acting.
func (standbyCache) NeedLeaderElection() bool { return false }

func (k *kinds) cacheOptions() cache.Options {
	return cache.Options{
		HTTPClient: k.manager.GetHTTPClient(),
		Scheme:     k.manager.GetScheme(),
		Mapper:     k.manager.GetRESTMapper(),
		// Nothing is to be found again that an event did not tell.
		SyncPeriod: new(zeroDuration),
	}
}
