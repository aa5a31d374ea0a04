package chartkinds

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

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
// If someone else serves the same kind, the custom resources are not waited for.
func (c *Controller) awaitDeletion(ctx context.Context, ck chartkind.ChartKind, s *served, facts *chartkind.Facts) (gone bool, err error) {
	older, isOlder := c.older(ck)
	if !c.Kinds.ServedByFile(ck.GroupKind()) && (!isOlder || older.GroupKind() != ck.GroupKind()) {
		found, err := c.count(ctx, ck, s)
		if err != nil {
			return false, err
		}
		if found.remaining > 0 || found.unknown != "" {
			facts.Deleted, facts.Remaining, facts.Uncounted = true, found.remaining, found.unknown
			return false, nil
		}
	}
	c.forget(ck.Name)
	return true, c.removeFinalizer(ctx, ck)
}
