package reconcile

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/inputs/valuesfrom"
	"github.com/chartwright/chartwright/internal/inventory"
	"github.com/chartwright/chartwright/internal/metrics"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/reconcile/queue"
	"github.com/chartwright/chartwright/internal/reconcile/status"
	"github.com/chartwright/chartwright/internal/release"
)

// Shared is what the reconcilers of all kinds share.
type Shared struct {
	// Operator is the operator's name (flag --operator-name).
	Operator string
	// ReconcilePeriod is how often every object is applied again, unless the watches
	// file sets another period; 0 means never.
	ReconcilePeriod time.Duration
	// MinReconcilePeriod is the shortest period that an annotation may set.
	MinReconcilePeriod time.Duration
	Resources          Resources
	Actions            Actions
	Index              *release.Index
	Inventory          inventory.Inventory
	Pool               *queue.Pool
	Sources            Sources
	Observed           Observed
	Outputs            Outputs
	// Dependencies order custom resources; nil if they are not to be ordered.
	Dependencies Dependencies
	// Version reads the resourceVersion of an object from the API server.
	Version  func(ctx context.Context, kind schema.GroupVersionKind, name types.NamespacedName) (string, error)
	Recorder record.EventRecorder
	Metrics  *metrics.Metrics
	// Why reads from the API server why an object is not ready. It returns a sentence,
	// empty if it finds no cause.
	Why func(ctx context.Context, object apply.Key, uid types.UID) (string, error)
	// Hook reads the state of a hook from the API server, and why the hook makes no
	// progress.
	Hook func(ctx context.Context, hook apply.Key, uid types.UID) (state api.HookState, why string, err error)
	// Namespaces are the namespaces that the operator watches; none means all.
	Namespaces []string
	// Signatures limits how fast records are signed again after a change of the key;
	// nil limits nothing.
	Signatures *rate.Limiter
	// OwnNamespace is the namespace that the operator runs in, empty outside a pod.
	OwnNamespace string
	// Now is the clock.
	Now func() time.Time
}

// Resources reads and patches custom resources, packed as in package customresource. A patch
// replaces the content of a custom resource by the response of the API server.
type Resources interface {
	// Complete returns a custom resource with all its content, as it is now in the API server.
	Complete(ctx context.Context, cr *unstructured.Unstructured) (*unstructured.Unstructured, error)
	Patch(ctx context.Context, cr *unstructured.Unstructured, patch client.Patch) error
	PatchStatus(ctx context.Context, cr *unstructured.Unstructured, patch client.Patch) error
}

// Reconciler reconciles the custom resources of one kind.
type Reconciler struct {
	Shared
	Kind catalog.Kind
	// Reader reads custom resources of the kind from a cache. The results are never
	// changed.
	Reader client.Reader
	// Permissions reports missing RBAC rules; nil if nothing checks them.
	Permissions Permissions
	// Wake reconciles a custom resource after a delay.
	Wake func(key types.NamespacedName, after time.Duration)
	// Until ends when another reconciler replaces this one. Actions that have not begun
	// then are dropped. Nil means never.
	Until context.Context
	// DeletionOnly reports that the kind was removed: only deletions are carried out. If
	// the kind has no chart either, it is known from release records only.
	DeletionOnly bool
	// Broken is why the entry of the kind cannot be served, for the status of custom resources;
	// empty if it can.
	Broken string

	memory memory
	latest latest
	// gone holds deleted custom resources that may have been remembered since. began reports
	// that Reconcile was called.
	gone  departed
	began atomic.Bool
	keys  table[types.UID, types.NamespacedName]
	queue rolloutQueue
	// foreign holds the UIDs of the records that were found not to be adoptable.
	foreign table[types.UID, struct{}]
	// unresponsive holds the kinds of objects that the API server does not return in time, and
	// when outputs may read them again.
	unresponsive table[schema.GroupKind, time.Time]
	// untrusted holds the newest records that are not authenticated, and unrepeatable
	// the records whose revisions cannot be rolled back to.
	untrusted    verdicts
	unrepeatable verdicts
}

const (
	// slow is how long an action runs before the status reports it. Most actions end
	// sooner, and then one patch is enough.
	slow = 2 * time.Second
	// slowQueue is how long an action is queued before the status reports it. If a
	// thousand custom resources are created at once, each would be patched twice
	// otherwise.
	slowQueue = 10 * time.Second
	// unsettled is how long objects may be not ready after an apply before the status
	// reports it. Most become ready sooner.
	unsettled = time.Second
)

// maxSteps bounds the steps of one reconciliation. Each step is one request, after
// which the custom resource is observed again. More steps mean that a step does not
// have the effect that package plan expects.
const maxSteps = 5

// Reconcile reconciles one custom resource.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	r.began.Store(true)
	for _, uid := range r.gone.take(request.NamespacedName) {
		r.forget(uid)
	}
	for range maxSteps {
		cr, err := r.load(ctx, request.NamespacedName)
		if cr == nil || err != nil {
			return ctrl.Result{}, err
		}
		if !r.serves(cr) {
			return ctrl.Result{}, r.reportBroken(ctx, request.NamespacedName, cr)
		}
		r.keys.put(cr.GetUID(), request.NamespacedName)
		v, err := r.observe(ctx, request.NamespacedName, cr)
		if err != nil {
			// Others in the rollout do not wait for this custom resource.
			r.leaveRollout(cr.GetUID())
			return ctrl.Result{}, err
		}
		if v.CR.GetNamespace() == "" && !r.watches(v.Release.Namespace) {
			// Operators that watch single namespaces all receive every cluster-scoped custom
			// resource, and another one manages this release.
			r.leaveRollout(v.CR.GetUID())
			return ctrl.Result{}, nil
		}
		r.claimSignature(v)
		if err := r.claimPosition(ctx, v); err != nil {
			return ctrl.Result{}, err
		}
		decision := plan.Next(v.Observation)
		r.applyEffects(v)
		r.holdDependents(v, decision)
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
	return ctrl.Result{}, fmt.Errorf("internal error: more than %d steps in one reconciliation", maxSteps)
}

// watches reports whether the operator watches a namespace. It returns true for an
// unknown namespace, because the status has to report why it is unknown.
func (r *Reconciler) watches(namespace string) bool {
	return len(r.Namespaces) == 0 || namespace == "" || slices.Contains(r.Namespaces, namespace)
}

// finish patches the status, unless an action has just begun. The result requeues the
// custom resource for changes that cause no event.
func (r *Reconciler) finish(ctx context.Context, v *snapshot, decision plan.Decision) (ctrl.Result, error) {
	if running := r.Pool.Running(v.Release, v.CR.GetUID()); running != nil {
		unreported := slow
		if running.Queued {
			unreported = slowQueue
		}
		if age := r.Now().Sub(running.Since); age < unreported {
			return ctrl.Result{RequeueAfter: unreported - age}, nil
		}
		v.Observation.Running = running
	}
	if decision.State == plan.StateDeleted || v.undecided && decision.State == plan.StatePostponed {
		return ctrl.Result{}, nil
	}
	if wait := r.settling(v); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	if decision.Throttled && r.memory.of(v.CR.GetUID()).reported {
		return ctrl.Result{RequeueAfter: decision.After}, nil
	}
	changed, err := r.report(ctx, v, decision)
	switch {
	case apply.AnswerOf(err) == apply.Conflict:
		// The cache will hold what another client has written.
		return ctrl.Result{RequeueAfter: settle}, nil
	case err != nil:
		return ctrl.Result{}, r.advise(v, err)
	case decision.Throttled:
		r.memory.report(v.CR.GetUID())
	}
	if !changed && decision.Step == plan.StepWait {
		r.Metrics.ReconcileDone(r.kindName(), metrics.ReconcileIdle)
	} else {
		r.Metrics.ReconcileDone(r.kindName(), metrics.ReconcileActed)
	}
	r.settleDependents(v, decision)
	after := decision.After
	if v.Unread {
		after = status.ReadAgain
	}
	for _, sooner := range []time.Duration{v.repair.after, r.diagnoseIn(v), graceIn(v), v.signIn} {
		if sooner > 0 && (after == 0 || sooner < after) {
			after = sooner
		}
	}
	return ctrl.Result{RequeueAfter: after}, nil
}

// applyEffects records what a reconciliation has found.
func (r *Reconciler) applyEffects(v *snapshot) {
	uid, o := v.CR.GetUID(), v.Observation
	if v.Release.Namespace != "" {
		r.Pool.Use(uid, v.Release.Namespace)
	}
	v.Unwatched = r.unwatched(v)
	if v.driftChecked {
		anew := r.memory.found(uid, v.Drift)
		for _, key := range anew {
			r.Metrics.DriftDetected(r.kindName(), key.GroupKind().String())
		}
		if len(anew) > 0 && r.memory.repairDue(uid) {
			// The correction does not wait for objects that cannot be corrected.
			r.Wake(v.key, 0)
		}
	}
	if v.reached {
		r.memory.reached(uid, plan.Target(o))
	}
	r.wakeForSources(v)
}

// settling returns how long the status must not report unready objects yet, because
// they were just applied.
func (r *Reconciler) settling(v *snapshot) time.Duration {
	if len(v.Health.Unready) == 0 || v.Health.Unready[0].Failed {
		return 0
	}
	return r.memory.of(v.CR.GetUID()).touched.Add(unsettled).Sub(v.Observation.Now)
}

// diagnoseIn returns how long until the next diagnosis of unready objects, or until
// their deadline, whichever comes first; 0 for neither. A diagnosis that is due now
// waits for the end of another state, which causes a reconciliation.
func (r *Reconciler) diagnoseIn(v *snapshot) time.Duration {
	if len(v.Health.Unready) == 0 {
		return 0
	}
	wait := max(0, v.progress.diagnoseAt.Sub(v.Observation.Now))
	if v.readiness() == openEnded {
		return wait
	}
	deadline := v.progress.since.Add(r.Kind.ReadyWithin()).Sub(v.Observation.Now)
	if deadline > 0 && (wait == 0 || deadline < wait) {
		wait = deadline
	}
	return wait
}

// graceIn returns how long until an object without a controller's report counts as
// ready, 0 if there is no such object.
func graceIn(v *snapshot) time.Duration {
	if v.Health.Next.IsZero() {
		return 0
	}
	return max(time.Millisecond, v.Health.Next.Sub(v.Observation.Now))
}

// kindName returns the name of the kind in metrics.
func (r *Reconciler) kindName() string { return r.Kind.GVK().GroupKind().String() }

// Permissions reports which RBAC rules the operator lacks for the releases of a kind.
type Permissions interface {
	// Missing returns the rules that the operator lacks and that every release of the
	// kind in a namespace needs, empty if none is missing. known is false before the
	// first check and, if no rule is missing so far, before the chart's rules are
	// derived.
	Missing(namespace string) (rules string, known bool)
	// Derive requests that the chart's rules are derived, after a sign that one is
	// missing.
	Derive()
	// Refused returns a sentence that names the rules that would have prevented a
	// forbidden error, and the account that needs them. It returns an empty string for
	// other errors. The account is that of the custom resource, if the operator
	// impersonates one.
	Refused(err error, account string) string
}

// Sources are the objects in valuesFrom, see valuesfrom.Store.
type Sources interface {
	// Merge merges the values in the sources of a custom resource into over. It sends
	// requests only for changed sources.
	Merge(ctx context.Context, user types.UID, from []valuesfrom.Source, over map[string]any) (map[string]any, valuesfrom.Secrets, error)
	// Saw records that an object has a resourceVersion that another watch has delivered.
	Saw(ref valuesfrom.Ref, resourceVersion string)
	// Versions returns a string that changes if an object of the sources changes.
	Versions(from []valuesfrom.Source) string
	// Forget drops the sources of a custom resource.
	Forget(user types.UID)
}

// Observed are the objects that a kind's own status fields read in addition to the release,
// see observed.Store.
type Observed interface {
	// Select returns the objects of each selection by its name, or why they are
	// unknown. It makes a request only for objects that exceeded the limits before.
	Select(ctx context.Context, user types.UID, selections []catalog.Selection) (objects map[string]any, missing map[string]string)
	// Forget drops the selections of a custom resource.
	Forget(user types.UID)
}
