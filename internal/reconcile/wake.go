package reconcile

import (
	"cmp"
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/reconcile/status"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/watches"
)

// Seen notes that the cache now holds this state of a custom resource. The caller
// calls it for every state, so that no short-lived finalizer is missed.
func (r *Reconciler) Seen(cr client.Object) {
	r.orphaned(cr)
	r.latest.seen(client.ObjectKeyFromObject(cr), cr.GetResourceVersion())
}

// remember keeps the result of a write until the cache holds it. The watch event may
// arrive before the write returns.
func (r *Reconciler) remember(ctx context.Context, key types.NamespacedName, written *unstructured.Unstructured) {
	r.latest.put(key, written)
	cached := &unstructured.Unstructured{}
	cached.SetGroupVersionKind(r.Kind.GVK())
	switch err := r.Reader.Get(ctx, key, cached); {
	case err == nil:
		r.latest.seen(key, cached.GetResourceVersion())
	case apply.AnswerOf(err) == apply.Gone:
		r.latest.forget(key)
	}
}

// Gone drops everything that is remembered of a deleted custom resource. It reports whether
// Reconcile must be called to do the same: a reconciliation that runs meanwhile can remember it
// again, and the next one with the same name begins after its end.
func (r *Reconciler) Gone(cr client.Object) (again bool) {
	key, uid := client.ObjectKeyFromObject(cr), cr.GetUID()
	r.latest.forget(key)
	r.forget(uid)
	// A standby reconciles nothing.
	if again = r.began.Load(); again {
		r.gone.add(key, uid)
	}
	return again
}

// forget drops everything that is remembered of a deleted custom resource, keys first: an action
// that ends later finds its UID missing.
func (r *Reconciler) forget(uid types.UID) {
	r.keys.forget(uid)
	r.Metrics.DeleteRelease(r.kindName(), uid)
	r.memory.forget(uid)
	r.Pool.Leave(uid)
	r.leaveRollout(uid)
	r.Inventory.Forget(uid)
	r.Sources.Forget(uid)
	r.Observed.Forget(uid)
	if r.Dependencies != nil {
		r.Dependencies.Forget(uid)
	}
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

// RecordChanged reconciles the owner of a changed or deleted release record, if it is of
// this kind.
func (r *Reconciler) RecordChanged(changed release.Record) {
	if _, exists := r.Index.Get(changed.Namespace, changed.Secret); !exists {
		r.foreign.forget(changed.UID)
		r.untrusted.forget(changed.UID)
		r.unrepeatable.forget(changed.UID)
	}
	r.wakeOwner(cmp.Or(changed.OwnerUID, changed.Controller), 0)
}

// WakeAll reconciles every custom resource of the kind.
func (r *Reconciler) WakeAll() { r.wakeAll(r.keys.values()) }

// Drifted reconciles the owner of drifted objects, if it is of this kind.
func (r *Reconciler) Drifted(owner types.UID) {
	if r.Kind.DriftMode() != watches.DriftDisabled {
		r.wakeOwner(owner, 0)
	}
}

// HealthChanged reconciles the owner of an object that became ready or unready, if it
// is of this kind.
func (r *Reconciler) HealthChanged(owner types.UID) { r.wakeOwner(owner, settle) }

// settle is how long changes of objects are collected for one reconciliation, because
// the rollout of a Deployment, for example, causes many changes.
const settle = 100 * time.Millisecond

// ObservedChanged reconciles a custom resource whose status fields read a changed
// object, if it is of this kind.
func (r *Reconciler) ObservedChanged(user types.UID) { r.wakeOwner(user, settle) }

// SourceChanged reconciles a custom resource that has a changed object in valuesFrom,
// if it is of this kind.
func (r *Reconciler) SourceChanged(user types.UID) { r.wakeOwner(user, 0) }

// DependencyChanged reconciles a custom resource after a change of an object that it depends
// on, or of a custom resource that depends on it, if it is of this kind.
func (r *Reconciler) DependencyChanged(user types.UID) { r.wakeOwner(user, 0) }

// KindsChanged retries the actions that failed because the API server did not serve
// the kind of an object. The caller calls it when a CRD has changed.
func (r *Reconciler) KindsChanged() {
	for _, owner := range r.memory.due(func(f *status.Failure) bool { return f.Unserved }) {
		r.wakeOwner(owner, 0)
	}
}

// PermissionsChanged reconciles every custom resource of the kind, and retries forbidden
// actions.
func (r *Reconciler) PermissionsChanged() {
	r.memory.due(func(f *status.Failure) bool { return f.Forbidden })
	r.memory.outputsDue()
	r.WakeAll()
}
