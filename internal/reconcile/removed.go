package reconcile

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/catalog"
)

// serves reports whether a custom resource is reconciled. If the kind was removed, only
// custom resources that are being deleted are.
func (r *Reconciler) serves(cr *unstructured.Unstructured) bool {
	return !r.DeletionOnly || !cr.GetDeletionTimestamp().IsZero() && r.guards(cr)
}

// guards reports whether a custom resource has to wait for this operator before it is
// gone. A kind without a chart has no selector either, so that a custom resource may
// belong to another operator unless it has a release of this operator. The records may be
// gone before the finalizer: then it counts that this process reconciled the custom
// resource, or that objects of the release are left.
func (r *Reconciler) guards(cr *unstructured.Unstructured) bool {
	if !hasFinalizer(cr, api.Finalizer) && !hasFinalizer(cr, api.FinalizersOperatorSDK...) {
		return false
	}
	uid := cr.GetUID()
	if r.Kind.Chart != nil || r.memory.of(uid).uninstalled {
		return true
	}
	if record := ownRecord(cr, r.Index.OwnedBy(uid), cr.GetNamespace()); record != nil {
		return record.Operator == r.Operator
	}
	if _, reconciled := r.keys.get(uid); reconciled {
		return true
	}
	if !cr.GetDeletionTimestamp().IsZero() {
		// Without a record, the release was in the namespace of the custom resource.
		r.Inventory.SetReleaseNamespace(uid, cr.GetNamespace())
	}
	return len(r.Inventory.OwnedBy(uid)) > 0
}

// Remaining counts the custom resources of a removed kind that still exist and whose
// deletion this operator has to carry out.
func (r *Reconciler) Remaining(ctx context.Context) (int, error) {
	list, err := r.list(ctx, r.Reader)
	if err != nil {
		return 0, err
	}
	count := 0
	for i := range list.Items {
		cr := &list.Items[i]
		if r.guards(r.latest.newest(client.ObjectKeyFromObject(cr), cr)) {
			count++
		}
	}
	return count, nil
}

// Close drops what is remembered of the custom resources of a kind that is no longer
// served. Their releases stay.
func (r *Reconciler) Close() {
	for _, uid := range r.keys.keys() {
		r.Pool.Leave(uid)
		r.Sources.Forget(uid)
		r.Observed.Forget(uid)
	}
	r.Metrics.DeleteKind(r.kindName())
}

// deleteHooks reports whether releases of the kind may have delete hooks, as far as the
// chart is known.
func deleteHooks(kind catalog.Kind) bool { return kind.Chart != nil && kind.Chart.Features.DeleteHooks }
