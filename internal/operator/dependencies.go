package operator

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/inputs/dependencies"
	"github.com/chartwright/chartwright/internal/inputs/valuesfrom"
	"github.com/chartwright/chartwright/internal/inventory"
	"github.com/chartwright/chartwright/internal/operator/permissions"
	"github.com/chartwright/chartwright/internal/operator/readiness"
	"github.com/chartwright/chartwright/internal/release"
)

// dependencyWatches passes objects that custom resources depend on to a store. It watches
// the kinds that this operator does not serve. Custom resources of served kinds come from
// the caches of their kinds, which hold them in packed form.
type dependencyWatches struct {
	sharedWatches[schema.GroupVersionKind]
	store *dependencies.Store

	// switching is locked while a kind begins or ends to be served, so that no watch of a
	// served kind starts.
	switching sync.Mutex
	served    map[schema.GroupKind]bool
}

func newDependencyWatches(caches informers, store *dependencies.Store, kindsOf func(catalog.Kind) []schema.GroupVersionKind) *dependencyWatches {
	describe := func(kind schema.GroupVersionKind) sharedWatch {
		w := sharedWatch{kind: kind, feed: store.Feed(kind), object: &unstructured.Unstructured{}, forbidden: func(mapping *meta.RESTMapping) string {
			return reasonForbidden + ": add to the rules of the operator's role: " + permissions.WatchRule(mapping.Resource)
		}}
		if kind == valuesfrom.SecretKind {
			// The content of Secrets is never read.
			w.object = &metav1.PartialObjectMetadata{}
			w.options = func(options *cache.Options) error {
				// Release records are numerous, and no dependencies.
				options.DefaultFieldSelector = fields.OneTermNotEqualSelector("type", release.SecretType)
				return nil
			}
		}
		return w
	}
	return &dependencyWatches{
		sharedWatches: newSharedWatches(caches, "dependencies", describe, kindsOf), store: store,
		served: map[schema.GroupKind]bool{},
	}
}

// serve registers a kind that this operator serves, before its controller starts. Its
// custom resources are not ready until they were reconciled.
func (d *dependencyWatches) serve(kind catalog.Kind) {
	d.switching.Lock()
	defer d.switching.Unlock()
	targets := d.keysOf(kind)
	on := make([]schema.GroupKind, len(targets))
	for i, gvk := range targets {
		on[i] = gvk.GroupKind()
	}
	gk := kind.GVK().GroupKind()
	d.served[gk] = true
	d.stop(func(gvk schema.GroupVersionKind) bool { return gvk.GroupKind() == gk })
	d.store.Serve(gk, on, kind.HealthRules)
}

// remove registers that this operator no longer serves a kind. Custom resources of other
// kinds may still depend on its custom resources.
func (d *dependencyWatches) remove(gk schema.GroupKind, kinds []*kindState) {
	d.switching.Lock()
	defer d.switching.Unlock()
	delete(d.served, gk)
	d.store.Stop(gk)
	for _, state := range kinds {
		for _, gvk := range d.keysOf(state.kind) {
			if !state.removed && gvk.GroupKind() == gk {
				d.start(gvk)
			}
		}
	}
}

// startKind starts the watches of the dependencies of a kind, and waits until they have
// settled.
func (d *dependencyWatches) startKind(ctx context.Context, kind catalog.Kind) {
	d.switching.Lock()
	var started []<-chan struct{}
	for _, gvk := range d.keysOf(kind) {
		if !d.served[gvk.GroupKind()] {
			started = append(started, d.start(gvk))
		}
	}
	d.switching.Unlock()
	await(ctx, started)
}

// feedServed passes the custom resources of a served kind to the store, and returns when the
// store has all of them. The caches are those of more scopes with each call.
func (d *dependencyWatches) feedServed(ctx context.Context, kind catalog.Kind, filled []cache.Cache) error {
	to := d.store.Feed(kind.GVK())
	var uids []types.UID
	for _, from := range filled {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(kind.GVK())
		listed, err := inventory.StartInformer(ctx, from, object, to.Handler())
		if err != nil {
			return fmt.Errorf("watch the dependents of %s: %w", kind.Kind, err)
		}
		if !receive(ctx, listed.Done()) {
			return ctx.Err()
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GVK())
		if err := from.List(ctx, list); err != nil {
			return fmt.Errorf("list %s: %w", kind.Kind, err)
		}
		for i := range list.Items {
			uids = append(uids, list.Items[i].GetUID())
		}
	}
	to.Synced()
	d.store.Expect(kind.GVK().GroupKind(), uids)
	return nil
}

// unwatched registers why the custom resources of a served kind are not watched.
func (d *dependencyWatches) unwatched(kind catalog.Kind, reason string) {
	d.store.Feed(kind.GVK()).Failed(reason)
}

// waits registers that a kind has no custom resources, because its CRD is missing.
func (d *dependencyWatches) waits(kind catalog.Kind) {
	d.unwatched(kind, readiness.WaitsForCRD(kind))
	d.store.Expect(kind.GVK().GroupKind(), nil)
}

// versionReader returns a function that reads the resourceVersion of an object.
func versionReader(from metadata.Interface, mapper meta.RESTMapper) func(context.Context, schema.GroupVersionKind, types.NamespacedName) (string, error) {
	return func(ctx context.Context, kind schema.GroupVersionKind, name types.NamespacedName) (string, error) {
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return "", err
		}
		var objects metadata.ResourceInterface = from.Resource(mapping.Resource)
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			objects = from.Resource(mapping.Resource).Namespace(name.Namespace)
		}
		object, err := objects.Get(ctx, name.Name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		return object.ResourceVersion, nil
	}
}
