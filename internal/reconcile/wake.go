package reconcile

import (
	"cmp"
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chartwright/chartwright/internal/reconcile/status"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/watches"
)

// Seen notes that the cache now holds this state of a custom resource. It is
// called for every state, so it also notes what only passing states show.
func (r *Reconciler) Seen(cr client.Object) {
	r.orphaned(cr)
	r.latest.seen(client.ObjectKeyFromObject(cr), cr.GetResourceVersion())
}

// remember keeps what a write returned until the cache holds it. The watch is
// often the faster one, and tells of it before the write has returned.
func (r *Reconciler) remember(ctx context.Context, key types.NamespacedName, written *unstructured.Unstructured) {
	r.latest.put(key, written)
	cached := &unstructured.Unstructured{}
	cached.SetGroupVersionKind(r.Kind.GVK())
	switch err := r.Reader.Get(ctx, key, cached); {
	case err == nil:
		r.latest.seen(key, cached.GetResourceVersion())
	case apierrors.IsNotFound(err):
		r.latest.forget(key)
	}
}

// Gone tells that a custom resource is gone, and drops what is remembered of
// it.
func (r *Reconciler) Gone(cr client.Object) {
	uid := cr.GetUID()
	r.Metrics.DeleteRelease(r.kindName(), uid)
	r.memory.forget(uid)
	r.keys.forget(uid)
	r.Pool.Leave(uid)
	r.leaveRollout(uid)
	r.latest.forget(client.ObjectKeyFromObject(cr))
	r.Inventory.Forget(uid)
	r.Sources.Forget(uid)
	r.Observed.Forget(uid)
}

// wakeOwner reconciles a custom resource after a while, if it is of this kind.
func (r *Reconciler) wakeOwner(uid types.UID, after time.Duration) {
	if key, ok := r.keys.get(uid); ok {
		r.Wake(key, after)
	}
}

// wakeAll reconciles custom resources now.
func (r *Reconciler) wakeAll(keys []types.NamespacedName) {
	for _, key := range keys {
		r.Wake(key, 0)
	}
}

// RecordChanged calls for a pass over the custom resource that a record belongs
// to, if it is of this kind.
func (r *Reconciler) RecordChanged(changed release.Record) {
	r.wakeOwner(cmp.Or(changed.OwnerUID, changed.Controller), 0)
}

// WakeAll calls for a pass over every custom resource of the kind.
func (r *Reconciler) WakeAll() { r.wakeAll(r.keys.values()) }

// Drifted calls for a pass over the custom resource whose objects are damaged,
// if it is of this kind.
func (r *Reconciler) Drifted(owner types.UID) {
	if r.Kind.DriftMode() != watches.DriftDisabled {
		r.wakeOwner(owner, 0)
	}
}

// HealthChanged calls for a pass over the custom resource of which an object has
// become ready, or is so no more, if it is of this kind.
func (r *Reconciler) HealthChanged(owner types.UID) { r.wakeOwner(owner, settle) }

// settle is how long changes of observed objects are gathered for one pass: a
// rollout is many, one after another.
const settle = 100 * time.Millisecond

// ObservedChanged calls for a pass over the custom resource that looks at an
// object that changed, if it is of this kind.
func (r *Reconciler) ObservedChanged(user types.UID) { r.wakeOwner(user, settle) }

// SourceChanged calls for a pass over the custom resource that uses an object
// that changed, if it is of this kind.
func (r *Reconciler) SourceChanged(user types.UID) { r.wakeOwner(user, 0) }

// KindsChanged tries again at once what has failed since the API server did not
// serve the kind of an object. It is called when a CustomResourceDefinition has
// changed.
func (r *Reconciler) KindsChanged() {
	for _, owner := range r.memory.due(func(f *status.Failure) bool { return f.Unserved }) {
		r.wakeOwner(owner, 0)
	}
}

// RightsChanged calls for a pass over every custom resource of the kind, and for
// another try of what was forbidden.
func (r *Reconciler) RightsChanged() {
	r.memory.due(func(f *status.Failure) bool { return f.Forbidden })
	r.WakeAll()
}
