package operator

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/inputs/observed"
)

// observedWatches watches the objects that status fields read in addition to the managed
// resources.
type observedWatches struct {
	sharedWatches[observed.Watch]
	store *observed.Store
}

func newObservedWatches(caches informers, store *observed.Store) *observedWatches {
	describe := func(w observed.Watch) sharedWatch {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(w.GroupVersionKind)
		return sharedWatch{
			kind: w.GroupVersionKind, feed: observedFeed{store, w}, object: object,
			options: func(options *cache.Options) (err error) {
				options.DefaultTransform = store.Transform(w)
				options.DefaultLabelSelector, err = w.Selector()
				return err
			},
			check: func(mapping *meta.RESTMapping) error {
				if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
					return errors.New("the kind is cluster-scoped, but only objects in the namespace of the release can be observed")
				}
				return nil
			},
			forbidden: func(*meta.RESTMapping) string { return "add a rule to the operator's role to get, list and watch them" },
		}
	}
	return &observedWatches{newSharedWatches(caches, "status fields", describe), store}
}

// startKind starts the watches of a kind, and waits until they have settled.
func (o *observedWatches) startKind(ctx context.Context, kind catalog.Kind) {
	started := make([]<-chan struct{}, len(kind.Observes))
	for i, input := range kind.Observes {
		started[i] = o.start(input.Watch)
	}
	await(ctx, started)
}

// observedFeed passes the objects of a watch to a store.
type observedFeed struct {
	store *observed.Store
	watch observed.Watch
}

// Handler returns the event handler of the watch.
func (f observedFeed) Handler() toolscache.ResourceEventHandler { return f.store.Handler() }

// Synced implements feed.
func (f observedFeed) Synced() { f.store.Synced(f.watch) }

// Failed implements feed.
func (f observedFeed) Failed(reason string) bool { return f.store.Failed(f.watch, reason) }
