package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chartwright/chartwright/internal/helm"
	"github.com/chartwright/chartwright/internal/release"
)

// orphaned reports whether a custom resource was deleted with propagationPolicy
// Orphan. The API server adds the finalizer orphan in the write that sets the
// deletion timestamp, and the garbage collector removes it soon after, so the
// finalizer is remembered.
func (r *Reconciler) orphaned(cr client.Object) bool {
	if !cr.GetDeletionTimestamp().IsZero() && hasFinalizer(cr, metav1.FinalizerOrphanDependents) {
		r.memory.orphan(cr.GetUID())
	}
	return r.memory.isOrphan(cr.GetUID())
}

// letGo removes the finalizer after the release was left as it is. The garbage
// collector may change the finalizers at the same time.
func (r *Reconciler) letGo(ctx context.Context, v *view) error {
	err := r.patchFinalizer(ctx, v, unguard)
	if apierrors.IsConflict(err) {
		return fmt.Errorf("%w: %w", release.ErrStale, err)
	}
	return err
}

// namedLeftovers is the number of leftovers that an error names.
const namedLeftovers = 5

// leftBehind returns an error if an uninstall left release records or objects
// behind. Without the error the next reconciliation would uninstall the release
// again at once, and without end.
func (r *Reconciler) leftBehind(v *view) error {
	var left []string
	for _, record := range r.Index.OwnedBy(v.cr.GetUID()) {
		if record.Namespace == v.release.Namespace {
			left = append(left, "Secret "+record.Namespace+"/"+record.Secret)
		}
	}
	for _, state := range r.Inventory.OwnedBy(v.cr.GetUID()) {
		if !state.Kept && !state.Deleting {
			left = append(left, state.String())
		}
	}
	if len(left) == 0 {
		return nil
	}
	slices.Sort(left)
	more := ""
	if len(left) > namedLeftovers {
		left, more = left[:namedLeftovers], fmt.Sprintf(" and %d more", len(left)-namedLeftovers)
	}
	return fmt.Errorf("%w: %s%s", helm.ErrLeftBehind, strings.Join(left, ", "), more)
}
