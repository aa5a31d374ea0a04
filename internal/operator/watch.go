package operator

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/chartwright/chartwright/internal/inventory"
	"github.com/chartwright/chartwright/internal/operator/permissions"
	"github.com/chartwright/chartwright/internal/release"
)

// informers starts caches and watches on the manager.
type informers struct {
	manager     manager.Manager
	permissions *permissions.Checker
	scopes      scopes
	tasks       *sync.WaitGroup
	logger      logr.Logger
}

// cacheOptions returns the options that all caches of a scope have in common.
func (i informers) cacheOptions(scope *namespaceScope) cache.Options {
	options := cache.Options{
		HTTPClient: i.manager.GetHTTPClient(),
		Scheme:     i.manager.GetScheme(),
		Mapper:     i.manager.GetRESTMapper(),
		// Events report every change, so that a resync is unnecessary.
		SyncPeriod: new(time.Duration(0)),
	}
	scope.limit(&options)
	return options
}

// startCache runs a cache until the context ends. It runs on every replica: a manager would run
// the caches of single namespaces on the leader only, so that a standby would not be ready.
func (i informers) startCache(ctx context.Context, options cache.Options) (cache.Cache, error) {
	started, err := cache.New(i.manager.GetConfig(), options)
	if err == nil {
		// Only a cache that runs already returns an error.
		i.tasks.Go(func() { _ = started.Start(ctx) })
	}
	return started, err
}

// watching is a started watch.
type watching struct {
	// synced is closed when the handler has received all existing objects.
	synced <-chan struct{}
	// failed receives the reason when the API server refuses the watch. It may accept the
	// watch later.
	failed <-chan string
}

// reportFailures returns a channel that receives why watches of a cache fail. It ignores
// other errors, for which reason returns "": they mean that the API server is unavailable,
// and are retried. A forbidden watch triggers a check of the permissions.
func (i informers) reportFailures(options *cache.Options, reason func(error) string) <-chan string {
	failed := make(chan string, 1)
	options.DefaultWatchErrorHandler = func(ctx context.Context, reflector *toolscache.Reflector, err error) {
		toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
		why := reason(err)
		if why == "" {
			return
		}
		if why == reasonForbidden {
			i.permissions.Check()
		}
		select {
		case failed <- why:
		default: // another failure is waiting
		}
	}
	return failed
}

// fill returns when a watch has listed all existing objects. It passes failures of the
// watch to failed. A failed watch retries by itself, with backoff. A change of the
// operator's permissions starts another attempt.
func (i informers) fill(ctx context.Context, start func(context.Context) (watching, error), failed func(reason string)) error {
	for ctx.Err() == nil {
		changed := i.permissions.Changed()
		attempt, stop := context.WithCancel(ctx)
		w, err := start(attempt)
		if err != nil {
			stop()
			return err
		}
		var again <-chan struct{}
		for filling := true; filling; {
			select {
			case <-w.synced:
				context.AfterFunc(ctx, stop)
				return nil
			case reason := <-w.failed:
				failed(reason)
				again = changed
			case <-again:
				filling = false
			case <-ctx.Done():
				filling = false
			}
		}
		stop()
	}
	return ctx.Err()
}

// watch starts an informer that runs until the context ends.
func (i informers) watch(ctx context.Context, object client.Object, options cache.Options, handler toolscache.ResourceEventHandler) (watching, error) {
	var failed <-chan string
	if options.DefaultWatchErrorHandler == nil {
		failed = i.reportFailures(&options, func(err error) string {
			if apierrors.IsForbidden(err) {
				return reasonForbidden
			}
			return ""
		})
	}
	started, err := i.startCache(ctx, options)
	if err != nil {
		return watching{}, err
	}
	listed, err := inventory.StartInformer(ctx, started, object, handler)
	if err != nil {
		return watching{}, err
	}
	return watching{synced: listed.Done(), failed: failed}, nil
}

// watchMetadata starts an informer for the metadata of a kind.
func (i informers) watchMetadata(ctx context.Context, gvk schema.GroupVersionKind, options cache.Options, handler toolscache.ResourceEventHandler) (watching, error) {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(gvk)
	w, err := i.watch(ctx, object, options, handler)
	if err != nil {
		return watching{}, fmt.Errorf("watch %s: %w", gvk.Kind, err)
	}
	return w, nil
}

// watchRecords starts the informer of the release index and returns when the index holds
// all records of the scope. It watches the records of all owners, because any of them may
// use a release name.
func (k *KindManager) watchRecords(ctx context.Context, scope *namespaceScope) error {
	options := k.cacheOptions(scope)
	options.DefaultLabelSelector = labels.SelectorFromSet(labels.Set{release.LabelOwner: release.OwnerHelm})
	options.DefaultFieldSelector = fields.OneTermEqualSelector("type", release.SecretType)
	options.DefaultTransform = release.Compact
	return k.fill(ctx, func(attempt context.Context) (watching, error) {
		return k.watchMetadata(attempt, corev1.SchemeGroupVersion.WithKind("Secret"), options, k.shared.Index.Handler())
	}, func(string) { scope.forbidden.set() })
}
