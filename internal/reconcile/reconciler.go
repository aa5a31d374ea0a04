package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/helm"
	"github.com/chartwright/chartwright/internal/inventory"
	"github.com/chartwright/chartwright/internal/metrics"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/watches"
)

// Shared is what the reconcilers of all kinds share.
type Shared struct {
	// Operator is the operator's name (flag --operator-name).
	Operator string
	// ReconcilePeriod is how often every object is applied again, where the
	// watches file does not say; 0 is never.
	ReconcilePeriod time.Duration
	// MinReconcilePeriod is the shortest period that an annotation may set.
	MinReconcilePeriod time.Duration
	Patcher            Patcher
	Helm               *helm.Client
	Index              *release.Index
	Inventory          inventory.Inventory
	Pool               *Pool
	Sources            Sources
	Observed           Observed
	Recorder           record.EventRecorder
	Metrics            *metrics.Metrics
	// Why finds out, from the API server, why an object is not ready: in a
	// sentence, empty where nothing is found.
	Why func(ctx context.Context, object apply.Key, uid types.UID) (string, error)
	// Hook finds out, from the API server, how far a hook is.
	Hook func(ctx context.Context, hook apply.Key, uid types.UID) (HookReport, error)
	// Namespaces are those that the operator watches; none means all.
	Namespaces []string
	// Signatures limits how fast records are signed that the current key has not
	// signed; nil limits nothing.
	Signatures *rate.Limiter
	// OwnNamespace is the namespace that the operator runs in, empty outside a pod.
	OwnNamespace string
	// Now is the clock.
	Now func() time.Time
}

// Patcher patches custom resources. It replaces the content of a custom resource
// by what the API server answers, packed as in package customresource.
type Patcher interface {
	Patch(ctx context.Context, cr *unstructured.Unstructured, patch client.Patch) error
	PatchStatus(ctx context.Context, cr *unstructured.Unstructured, patch client.Patch) error
}

// Reconciler serves one kind.
type Reconciler struct {
	Shared
	Kind catalog.Kind
	// Reader reads custom resources of the kind from a cache. What it returns
	// is never changed.
	Reader client.Reader
	// Rights are what the operator may not do; nil where nobody looks.
	Rights Rights
	// Wake calls for another pass over a custom resource, after a while.
	Wake func(key types.NamespacedName, after time.Duration)

	memory memory
	latest latest
	keys   keys
	fights fights
	line   line
	// foreign holds the records that were found not to be adoptable.
	foreign foreign
	// untrusted holds the newest records that do not verify, and unrepeatable those
	// that cannot be rolled back to.
	untrusted    verdicts
	unrepeatable verdicts
}

const (
	// slow is how long an action runs before the status says so. Most end
	// sooner, also where a thousand begin at once, and one patch then tells it
	// all.
	slow = 2 * time.Second
	// patience is how long an action waits for its turn before the status says
	// so: where a thousand are applied at once, each would be written twice.
	patience = 10 * time.Second
	// unsettled is how long objects that were just applied are given to become
	// ready before the status says that they are not. Most do sooner.
	unsettled = time.Second
)

// maxSteps bounds the steps of one pass; each is one request that changes what
// is observed next. More than a few mean that a step does not do what decide
// expects of it.
const maxSteps = 5

// Reconcile makes one pass over one custom resource.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	for range maxSteps {
		v, err := r.observe(ctx, request.NamespacedName)
		if err != nil {
			return ctrl.Result{}, err
		}
		if v == nil {
			return ctrl.Result{}, nil
		}
		if r.othersBusiness(v) {
			r.leaveLine(v.cr.GetUID())
			return ctrl.Result{}, nil
		}
		if v.release.Namespace != "" {
			r.Pool.Use(v.cr.GetUID(), v.release.Namespace)
		}
		decision := plan.Next(v.observation)
		log.FromContext(ctx).V(1).Info("decided", "state", decision.State, "step", decision.Step, "after", decision.After)
		again, err := r.act(ctx, v, decision)
		if err != nil {
			return ctrl.Result{}, r.refusedStep(ctx, v, decision, err)
		}
		if again {
			continue
		}
		return r.finish(ctx, v, decision)
	}
	return ctrl.Result{}, fmt.Errorf("internal error: more than %d steps in one pass", maxSteps)
}

// othersBusiness tells a cluster-scoped custom resource whose release goes where
// this operator does not look: each operator of some namespaces sees them all.
func (r *Reconciler) othersBusiness(v *view) bool {
	return v.cr.GetNamespace() == "" && !r.watches(v.release.Namespace)
}

// watches tells whether the operator looks into a namespace. Where none is known
// there is something to tell.
func (r *Reconciler) watches(namespace string) bool {
	return len(r.Namespaces) == 0 || namespace == "" || slices.Contains(r.Namespaces, namespace)
}

// finish reports, unless an action has just begun, and says when to look again
// where nothing will call for it.
func (r *Reconciler) finish(ctx context.Context, v *view, decision plan.Decision) (ctrl.Result, error) {
	if running := r.Pool.Running(v.release, v.cr.GetUID()); running != nil {
		untold := slow
		if running.Queued {
			untold = patience
		}
		if age := r.Now().Sub(running.Since); age < untold {
			return ctrl.Result{RequeueAfter: untold - age}, nil
		}
		v.observation.Running = running
		decision = plan.Next(v.observation)
	}
	if decision.State == plan.StateDeleted || v.undecided && decision.State == plan.StatePostponed {
		return ctrl.Result{}, nil
	}
	if wait := r.settling(v); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	if decision.Throttled && r.memory.report(v.cr.GetUID()) {
		return ctrl.Result{RequeueAfter: decision.After}, nil
	}
	changed, err := r.report(ctx, v, decision)
	if err != nil {
		return ctrl.Result{}, r.advise(v, err)
	}
	if !changed && decision.Step == plan.StepWait {
		r.Metrics.ReconcileDone(r.kindName(), metrics.ReconcileIdle)
	} else {
		r.Metrics.ReconcileDone(r.kindName(), metrics.ReconcileActed)
	}
	after := decision.After
	for _, sooner := range []time.Duration{v.repairIn, r.lookIn(v), graceIn(v), v.signIn} {
		if sooner > 0 && (after == 0 || sooner < after) {
			after = sooner
		}
	}
	return ctrl.Result{RequeueAfter: after}, nil
}

// settling is how long the status is to wait for objects that were just applied.
func (r *Reconciler) settling(v *view) time.Duration {
	if len(v.health.Unready) == 0 || v.health.Unready[0].Failed {
		return 0
	}
	return r.memory.touchedAt(v.cr.GetUID()).Add(unsettled).Sub(v.observation.Now)
}

// lookIn is when to look again at objects that are not ready, though nothing
// changes: to find out why, or because their time is up. What is due by now, and
// was not done, waits for another state to end, and that calls for a pass.
func (r *Reconciler) lookIn(v *view) time.Duration {
	if len(v.health.Unready) == 0 {
		return 0
	}
	look := max(0, v.progress.lookAt.Sub(v.observation.Now))
	if v.standing() == openEnded {
		return look
	}
	deadline := v.progress.since.Add(r.Kind.ReadyWithin()).Sub(v.observation.Now)
	if deadline > 0 && (look == 0 || deadline < look) {
		look = deadline
	}
	return look
}

// graceIn is how long until an object counts as ready that no controller has
// reported on, 0 where there is none.
func graceIn(v *view) time.Duration {
	if v.health.Next.IsZero() {
		return 0
	}
	return max(time.Millisecond, v.health.Next.Sub(v.observation.Now))
}

// Seen notes that the cache now holds this state of a custom resource. It is
// called for every state, so it also notes what only passing states show.
func (r *Reconciler) Seen(cr client.Object) {
	r.orphaned(cr)
	r.latest.seen(client.ObjectKeyFromObject(cr), cr.GetResourceVersion())
}

// remember keeps what a write returned until the cache holds it. The watch is
// often the faster one, and tells of it before the write has returned.
func (r *Reconciler) remember(ctx context.Context, key types.NamespacedName, written *unstructured.Unstructured) {
	r.latest.wrote(key, written)
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
	r.fights.forget(uid)
	r.leaveLine(uid)
	r.latest.forget(client.ObjectKeyFromObject(cr))
	r.Inventory.Forget(uid)
	r.forgetSources(uid)
	r.forgetObserved(uid)
}

// RecordChanged calls for a pass over the custom resource that a record belongs
// to, if it is of this kind.
func (r *Reconciler) RecordChanged(changed release.Record) {
	if key, ok := r.keys.get(cmp.Or(changed.OwnerUID, changed.Controller)); ok {
		r.Wake(key, 0)
	}
}

// WakeAll calls for a pass over every custom resource of the kind.
func (r *Reconciler) WakeAll() {
	for _, key := range r.keys.all() {
		r.Wake(key, 0)
	}
}

// Drifted calls for a pass over the custom resource whose objects are damaged,
// if it is of this kind.
func (r *Reconciler) Drifted(owner types.UID) {
	if key, ok := r.keys.get(owner); ok && r.Kind.DriftMode() != watches.DriftDisabled {
		r.Wake(key, 0)
	}
}

// HealthChanged calls for a pass over the custom resource of which an object has
// become ready, or is so no more, if it is of this kind.
func (r *Reconciler) HealthChanged(owner types.UID) {
	if key, ok := r.keys.get(owner); ok {
		r.Wake(key, settle)
	}
}

// kindName is what the metrics call the kind.
func (r *Reconciler) kindName() string { return r.Kind.GVK().GroupKind().String() }

// hasFinalizer tells whether a custom resource carries one of the finalizers.
func hasFinalizer(cr client.Object, finalizers ...string) bool {
	return slices.ContainsFunc(cr.GetFinalizers(), func(f string) bool { return slices.Contains(finalizers, f) })
}
