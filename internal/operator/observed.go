package operator

import (
	"errors"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
		return sharedWatch{
			kind: w.GroupVersionKind, feed: store.Feed(w), object: &unstructured.Unstructured{},
			options: func(options *cache.Options) (err error) {
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
	keysOf := func(kind catalog.Kind) []observed.Watch {
		keys := make([]observed.Watch, len(kind.Observes))
		for i, input := range kind.Observes {
			keys[i] = input.Watch
		}
		return keys
	}
	return &observedWatches{newSharedWatches(caches, "status fields", describe, keysOf), store}
}
