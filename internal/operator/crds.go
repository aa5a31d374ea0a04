package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/chartwright/chartwright/internal/chart/crd"
)

var crdResource = crdGVK.GroupVersion().WithResource("customresourcedefinitions")

// watchCRDs tells k.changed when a CRD comes, changes or goes, and returns
// when those of the kinds are known. Without the right to it kinds are looked for now and then.
// An operator of some namespaces need not have it, and asks for it first.
func (k *kinds) watchCRDs(ctx context.Context) error {
	if len(k.options.Namespaces) > 0 && !k.maySeeCRDs(ctx) {
		k.blind.Store(true)
		k.manager.GetLogger().Info("CRDs may not be watched: a kind whose CRD comes later is seen some seconds later, and a rollout is not paused by its CRD")
		go func() {
			for {
				select {
				case <-k.sight:
				case <-ctx.Done():
					return
				}
				if k.maySeeCRDs(ctx) {
					if err := k.startCRDs(ctx); err != nil && ctx.Err() == nil {
						k.manager.GetLogger().Error(err, "CRDs not watched")
					}
					return
				}
			}
		}()
		return nil
	}
	return k.startCRDs(ctx)
}

// startCRDs begins to watch CRDs.
func (k *kinds) startCRDs(ctx context.Context) error {
	client, err := metadata.NewForConfigAndClient(metadata.ConfigFor(k.manager.GetConfig()), k.manager.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("watch CRDs: %w", err)
	}
	informer := toolscache.NewSharedIndexInformer(k.crdNews(client.Resource(crdResource)), &metav1.PartialObjectMetadata{}, 0, toolscache.Indexers{})
	if err := informer.SetTransform(compactCRD); err != nil {
		return fmt.Errorf("watch CRDs: %w", err)
	}
	refused := make(chan struct{})
	if err := informer.SetWatchErrorHandlerWithContext(onRefusal(sync.OnceFunc(func() { close(refused) }))); err != nil {
		return fmt.Errorf("watch CRDs: %w", err)
	}
	changed := func(definition any) {
		k.sawCRD(definition)
		k.lookSoon()
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(definition any, initial bool) {
			k.sawCRD(definition)
			// Those that are there at first are looked for anyway.
			if !initial {
				k.lookSoon()
			}
		},
		UpdateFunc: func(_, definition any) { changed(definition) },
		DeleteFunc: changed,
	})
	if err != nil {
		return fmt.Errorf("watch CRDs: %w", err)
	}
	go informer.RunWithContext(ctx)
	synced := registration.HasSyncedChecker().Done()
	if err := k.await(ctx, watching{synced: synced, refused: refused}, func() {
		k.blind.Store(true)
		k.manager.GetLogger().Info("CRDs may not be watched: a kind whose CRD comes later is seen some seconds later")
	}); err != nil {
		return err
	}
	go func() {
		select {
		case <-synced:
			if k.blind.Swap(false) {
				k.lookSoon()
			}
		case <-ctx.Done():
		}
	}()
	return nil
}

// lookSoon calls for a look at what the API server has.
func (k *kinds) lookSoon() {
	select {
	case k.changed <- struct{}{}:
	default: // somebody will look already
	}
}

// crdNews lists the CRDs of the kinds and watches all: others matter when they
// come or go, and those that are there already, some hundred in many clusters,
// are never read.
func (k *kinds) crdNews(client metadata.ResourceInterface) toolscache.ListerWatcher {
	listed := false
	return fromNow{&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			list, err := listCRDs(ctx, client, k.crdNames())
			if err == nil && listed {
				// The watch was cut off for so long that others may have come and gone.
				k.lookSoon()
			}
			listed = listed || err == nil
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return client.Watch(ctx, options)
		},
	}}
}

// fromNow is listed and then watched; a watch that begins with all that is there
// takes no other list.
type fromNow struct{ *toolscache.ListWatch }

// IsWatchListSemanticsUnSupported answers yes, by client-go's name for it.
func (fromNow) IsWatchListSemanticsUnSupported() bool { return true }

// crdNames returns the names of the kinds' CRDs. One that is not served yet, or of
// which the API server has not answered in time, is expected under its own kind's
// name; the watch reports it when its name is another.
func (k *kinds) crdNames() []string {
	names, found := make([]string, len(k.options.Kinds)), make([]chan string, len(k.options.Kinds))
	for i, kind := range k.options.Kinds {
		names[i], found[i] = crd.Name(kind), make(chan string, 1)
		go func() { found[i] <- k.definitionOf(kind) }()
	}
	within, cancel := context.WithTimeout(context.Background(), lookupsWithin)
	defer cancel()
	for i := range names {
		select {
		case name := <-found[i]:
			names[i] = cmp.Or(name, names[i])
		case <-within.Done():
		}
	}
	return names
}

// listCRDs reads CRDs by their names, each by a request. The version of the list
// is older than they are: whatever changes meanwhile, a watch tells again.
func listCRDs(ctx context.Context, client metadata.ResourceInterface, names []string) (*metav1.PartialObjectMetadataList, error) {
	list, err := client.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, err
	}
	found, errs := make([][]metav1.PartialObjectMetadata, len(names)), make([]error, len(names))
	var read sync.WaitGroup
	for i, name := range names {
		read.Go(func() {
			named, err := client.List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()})
			if err != nil {
				errs[i] = err
				return
			}
			found[i] = named.Items
		})
	}
	read.Wait()
	return &metav1.PartialObjectMetadataList{
		TypeMeta: list.TypeMeta,
		ListMeta: metav1.ListMeta{ResourceVersion: list.ResourceVersion},
		Items:    slices.Concat(found...),
	}, errors.Join(errs...)
}

// maySeeCRDs asks whether the operator may watch CRDs. Where nobody can tell, it
// tries.
func (k *kinds) maySeeCRDs(ctx context.Context) bool {
	for _, verb := range []string{"list", "watch"} {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Group: crdGVK.Group, Resource: crdResource.Resource, Verb: verb},
		}}
		answer, err := k.clientset.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err == nil && !answer.Status.Allowed {
			return false
		}
	}
	return true
}
