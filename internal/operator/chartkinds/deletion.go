package chartkinds

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata/metadatainformer"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chartkind"
)

// addFinalizer adds the finalizer to a ChartKind that is not being deleted.
func (c *Controller) addFinalizer(ctx context.Context, ck chartkind.ChartKind) (added bool, err error) {
	if !c.leads() || !ck.DeletionTimestamp.IsZero() || slices.Contains(ck.Finalizers, chartkind.Finalizer) {
		return false, nil
	}
	return true, c.setFinalizers(ctx, ck, append(slices.Clone(ck.Finalizers), chartkind.Finalizer))
}

// removeFinalizer ends the deletion of a ChartKind.
func (c *Controller) removeFinalizer(ctx context.Context, ck chartkind.ChartKind) error {
	if !c.leads() {
		return nil
	}
	if err := c.Cache.Delete(ck.UID); err != nil {
		c.Logger.Info("chart not deleted from the cache", "chartKind", ck.Name, "error", err.Error())
	}
	left := slices.DeleteFunc(slices.Clone(ck.Finalizers), func(name string) bool { return name == chartkind.Finalizer })
	if len(left) == len(ck.Finalizers) {
		return nil
	}
	return c.setFinalizers(ctx, ck, left)
}

// setFinalizers replaces the finalizers, unless someone else has changed the ChartKind.
func (c *Controller) setFinalizers(ctx context.Context, ck chartkind.ChartKind, finalizers []string) error {
	err := c.patch(ctx, ck.Name, "", map[string]any{"metadata": map[string]any{
		"finalizers": finalizers, "resourceVersion": ck.ResourceVersion, "uid": ck.UID,
	}})
	if err != nil {
		return fmt.Errorf("set the finalizers: %w", err)
	}
	return nil
}

// deleteOrphaning stops serving a deleted ChartKind whose custom resources remain.
func (c *Controller) deleteOrphaning(ctx context.Context, ck chartkind.ChartKind) (done bool, err error) {
	if !c.stops(ck) {
		return false, nil
	}
	c.forget(ck.Name)
	if slices.Contains(ck.Finalizers, chartkind.Finalizer) && c.leads() {
		c.event(ck, corev1.EventTypeNormal, "Orphaned", fmt.Sprintf("%s is no longer served; its custom resources and their releases remain", ck.GroupKind()))
	}
	return true, c.removeFinalizer(ctx, ck)
}

// stops reports whether a deleted ChartKind is no longer served, although custom resources
// may exist. Without the finalizer, it waits for the finalizers of others only.
func (*Controller) stops(ck chartkind.ChartKind) bool {
	return !ck.DeletionTimestamp.IsZero() && (ck.Spec.Orphans() || !slices.Contains(ck.Finalizers, chartkind.Finalizer))
}

// awaitDeletion stops serving a deleted ChartKind when its last custom resource is deleted.
func (c *Controller) awaitDeletion(ctx context.Context, ck chartkind.ChartKind, s *served, facts *chartkind.Facts) (gone bool, err error) {
	if facts.Conflict == "" {
		count, synced, err := c.count(ctx, ck, s)
		if err != nil {
			return false, err
		}
		if !synced || count > 0 {
			facts.Deleted, facts.Remaining = true, count
			return false, nil
		}
	}
	c.forget(ck.Name)
	return true, c.removeFinalizer(ctx, ck)
}

// count returns the number of custom resources of a deleted ChartKind. It watches them
// until the ChartKind is deleted. synced is false until all are listed.
func (c *Controller) count(ctx context.Context, ck chartkind.ChartKind, s *served) (count int, synced bool, err error) {
	gvk := ck.GroupKind().WithVersion(ck.Spec.Names.Version)
	mapping, err := c.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		// Without a CRD there are no custom resources.
		return 0, true, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("find the resource of %s: %w", gvk, err)
	}
	c.mu.Lock()
	counts := c.counts[ck.Name]
	if counts == nil {
		counts = c.newCounter(ctx, ck.Name, mapping, s)
		c.counts[ck.Name] = counts
	}
	c.mu.Unlock()
	count, synced = counts.count()
	return count, synced, nil
}

// counter counts the custom resources of a kind, by watches of their metadata.
type counter struct {
	stop      context.CancelFunc
	informers []toolscache.SharedIndexInformer
	// unserved: the API server does not serve the kind.
	unserved atomic.Bool
}

func (c *Controller) newCounter(ctx context.Context, name string, mapping *meta.RESTMapping, s *served) *counter {
	namespaces := c.Namespaces
	if len(namespaces) == 0 || mapping.Scope.Name() == meta.RESTScopeNameRoot {
		namespaces = []string{metav1.NamespaceAll}
	}
	selector := ""
	if newest := s.newest(); newest != nil {
		selector = selectorOf(newest.kind)
	}
	ctx, stop := context.WithCancel(ctx)
	counts := &counter{stop: stop}
	again := func(any) { c.queue.Add(name) }
	for _, namespace := range namespaces {
		informer := metadatainformer.NewFilteredMetadataInformer(c.Metadata, mapping.Resource, namespace, 0, toolscache.Indexers{},
			func(options *metav1.ListOptions) { options.LabelSelector = selector }).Informer()
		// Errors would mean that the informer has started already.
		_ = informer.SetTransform(onlyIdentity)
		_ = informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *toolscache.Reflector, err error) {
			if apierrors.IsNotFound(err) && !counts.unserved.Swap(true) {
				again(nil)
			}
		})
		registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: again, DeleteFunc: again})
		if err != nil {
			// Only an informer that was stopped returns an error.
			continue
		}
		counts.informers = append(counts.informers, informer)
		c.tasks.Go(func() { informer.RunWithContext(ctx) })
		c.tasks.Go(func() {
			select {
			case <-registration.HasSyncedChecker().Done():
				again(nil)
			case <-ctx.Done():
			}
		})
	}
	return counts
}

// count returns the number of custom resources, and whether all are listed.
func (c *counter) count() (count int, synced bool) {
	if c.unserved.Load() {
		// Without a CRD there are no custom resources.
		return 0, true
	}
	synced = true
	for _, informer := range c.informers {
		count += len(informer.GetStore().ListKeys())
		synced = synced && informer.HasSynced()
	}
	return count, synced
}

// onlyIdentity removes everything except the name.
func onlyIdentity(object any) (any, error) {
	found, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	return &metav1.PartialObjectMetadata{TypeMeta: found.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		Name: found.Name, Namespace: found.Namespace, UID: found.UID, ResourceVersion: found.ResourceVersion,
	}}, nil
}

// selectorOf returns the label selector of a kind, empty for all custom resources.
func selectorOf(kind catalog.Kind) string {
	if kind.Selector == nil {
		return ""
	}
	return metav1.FormatLabelSelector(kind.Selector)
}
