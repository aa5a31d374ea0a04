package operator

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chartwright/chartwright/internal/records"
)

var (
	secretGVK = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	crdGVK    = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
)

// watchRecords feeds the index of release records and returns when it holds
// all that are stored. Records of every owner are watched, since a name that
// somebody else's release has is taken.
func (k *kinds) watchRecords(ctx context.Context) error {
	options := k.cacheOptions()
	options.DefaultNamespaces = k.options.cacheNamespaces()
	options.DefaultLabelSelector = labels.SelectorFromSet(labels.Set{records.LabelOwner: records.OwnerHelm})
	options.DefaultFieldSelector = fields.OneTermEqualSelector("type", records.SecretType)
	options.DefaultTransform = records.Compact
	return k.watch(ctx, secretGVK, options, k.shared.Index.Handler())
}

// watchCRDs tells k.changed when a CRD comes, changes or goes, and returns
// when all are known.
func (k *kinds) watchCRDs(ctx context.Context) error {
	options := k.cacheOptions()
	options.DefaultTransform = bareMetadata
	changed := func() {
		select {
		case k.changed <- struct{}{}:
		default: // somebody will look already
		}
	}
	return k.watch(ctx, crdGVK, options, toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { changed() },
		UpdateFunc: func(any, any) { changed() },
		DeleteFunc: func(any) { changed() },
	})
}

// watch starts an informer on the metadata of a kind and waits until the
// handler has seen all that is there.
func (k *kinds) watch(ctx context.Context, gvk schema.GroupVersionKind, options cache.Options, handler toolscache.ResourceEventHandler) error {
	informers, err := cache.New(k.manager.GetConfig(), options)
	if err != nil {
		return fmt.Errorf("watch %s: %w", gvk.Kind, err)
	}
	if err := k.manager.Add(standbyCache{informers}); err != nil {
		return fmt.Errorf("watch %s: %w", gvk.Kind, err)
	}
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(gvk)
	informer, err := informers.GetInformer(ctx, object)
	if err != nil {
		return fmt.Errorf("watch %s: %w", gvk.Kind, err)
	}
	registration, err := informer.AddEventHandler(handler)
	if err != nil {
		return fmt.Errorf("watch %s: %w", gvk.Kind, err)
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return ctx.Err()
	}
	return nil
}

// standbyCache starts without the lease. Caches of single namespaces do not say
// so themselves, and a standby would neither be ready nor take over warm.
type standbyCache struct{ cache.Cache }

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

// bareMetadata keeps just what tells one object from another.
func bareMetadata(object any) (any, error) {
	m, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	return &metav1.PartialObjectMetadata{
		TypeMeta: m.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion,
		},
	}, nil
}

// compactCR keeps of a custom resource what a pass reads.
func compactCR(object any) (any, error) {
	if o, ok := object.(client.Object); ok {
		o.SetManagedFields(nil)
		if annotations := o.GetAnnotations(); annotations[lastApplied] != "" {
			delete(annotations, lastApplied)
			o.SetAnnotations(annotations)
		}
	}
	return object, nil
}

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"
