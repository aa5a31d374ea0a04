package reconcile

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	"github.com/chartwright/chartwright/internal/release"
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
	Actions            Actions
	Index              *release.Index
	Inventory          inventory.Inventory
	Pool               *queue.Pool
	Sources            Sources
	Observed           Observed
	Recorder           record.EventRecorder
	Metrics            *metrics.Metrics
	// Why finds out, from the API server, why an object is not ready: in a
	// sentence, empty where nothing is found.
	Why func(ctx context.Context, object apply.Key, uid types.UID) (string, error)
	// Hook finds out, from the API server, how far a hook is.
	Hook func(ctx context.Context, hook apply.Key, uid types.UID) (state api.HookState, why string, err error)
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
	keys   table[types.UID, types.NamespacedName]
	queue  rolloutQueue
	// foreign holds the UIDs of the records that were found not to be adoptable.
	foreign table[types.UID, struct{}]
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
		cr, err := r.load(ctx, request.NamespacedName)
		if cr == nil || err != nil {
			return ctrl.Result{}, err
		}
		r.keys.put(cr.GetUID(), request.NamespacedName)
		v, err := r.observe(ctx, request.NamespacedName, cr)
		if err != nil {
			if isTransient(err) {
				// Others in the rollout do not wait for this custom resource.
				r.leaveRollout(cr.GetUID())
			}
			return ctrl.Result{}, err
		}
		if r.othersBusiness(v) {
			r.leaveRollout(v.CR.GetUID())
			return ctrl.Result{}, nil
		}
		r.claimSignature(v)
		if err := r.claimPosition(ctx, v); err != nil {
			return ctrl.Result{}, err
		}
		decision := plan.Next(v.Observation)
		r.applyEffects(v)
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

// othersBusiness tells a cluster-scoped custom resource whose release goes where
// this operator does not look: each operator of some namespaces sees them all.
func (r *Reconciler) othersBusiness(v *snapshot) bool {
	return v.CR.GetNamespace() == "" && !r.watches(v.Release.Namespace)
}

// watches tells whether the operator looks into a namespace. Where none is known
// there is something to tell.
func (r *Reconciler) watches(namespace string) bool {
	return len(r.Namespaces) == 0 || namespace == "" || slices.Contains(r.Namespaces, namespace)
}

// finish reports, unless an action has just begun, and says when to look again
// where nothing will call for it.
func (r *Reconciler) finish(ctx context.Context, v *snapshot, decision plan.Decision) (ctrl.Result, error) {
	if running := r.Pool.Running(v.Release, v.CR.GetUID()); running != nil {
		untold := slow
		if running.Queued {
			untold = patience
		}
		if age := r.Now().Sub(running.Since); age < untold {
			return ctrl.Result{RequeueAfter: untold - age}, nil
		}
		v.Observation.Running = running
	}
	if decision.State == plan.StateDeleted || v.undecided && decision.State == plan.StatePostponed {
		return ctrl.Result{}, nil
	}
	if wait := r.settling(v); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	if decision.Throttled && r.memory.report(v.CR.GetUID()) {
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
	for _, sooner := range []time.Duration{v.repair.after, r.lookIn(v), graceIn(v), v.signIn} {
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
		for _, key := range r.memory.found(uid, v.Drift) {
			r.Metrics.DriftDetected(r.kindName(), key.GroupKind().String())
		}
	}
	if v.reached {
		r.memory.reached(uid, plan.Target(o))
	}
	r.wakeForSources(v)
}

// settling is how long the status is to wait for objects that were just applied.
func (r *Reconciler) settling(v *snapshot) time.Duration {
	if len(v.Health.Unready) == 0 || v.Health.Unready[0].Failed {
		return 0
	}
	return r.memory.of(v.CR.GetUID()).touched.Add(unsettled).Sub(v.Observation.Now)
}

// lookIn is when to look again at objects that are not ready, though nothing
// changes: to find out why, or because their time is up. What is due by now, and
// was not done, waits for another state to end, and that calls for a pass.
func (r *Reconciler) lookIn(v *snapshot) time.Duration {
	if len(v.Health.Unready) == 0 {
		return 0
	}
	look := max(0, v.progress.lookAt.Sub(v.Observation.Now))
	if v.standing() == openEnded {
		return look
	}
	deadline := v.progress.since.Add(r.Kind.ReadyWithin()).Sub(v.Observation.Now)
	if deadline > 0 && (look == 0 || deadline < look) {
		look = deadline
	}
	return look
}

// graceIn is how long until an object counts as ready that no controller has
// reported on, 0 where there is none.
func graceIn(v *snapshot) time.Duration {
	if v.Health.Next.IsZero() {
		return 0
	}
	return max(time.Millisecond, v.Health.Next.Sub(v.Observation.Now))
}

// kindName is what the metrics call the kind.
func (r *Reconciler) kindName() string { return r.Kind.GVK().GroupKind().String() }

// Rights knows what the operator may not do for the custom resources of a kind.
type Rights interface {
	// Missing names the rules that the operator lacks and that every release of
	// the kind in a namespace needs, empty where there is none. It is not known
	// until somebody has looked.
	Missing(namespace string) (rules string, known bool)
	// Refused says which rules would have allowed what an error says was
	// forbidden, and to whom to give them: a sentence, empty where the error is
	// about something else. The account is in whose name requests are made
	// beside the operator's own, if in anybody's.
	Refused(err error, account string) string
}

// Sources is what values come from beside the spec, see sources.Store.
type Sources interface {
	// Merge lays what the sources of a custom resource hold over values. It
	// asks the API server only for what has changed.
	Merge(ctx context.Context, user types.UID, from []valuesfrom.Source, over map[string]any) (map[string]any, valuesfrom.Secrets, error)
	// Versions returns a text that differs if an object of the sources has changed.
	Versions(from []valuesfrom.Source) string
	// Forget ends what a custom resource uses.
	Forget(user types.UID)
}

// Observed is what a kind's own status fields speak of beside the release, see
// Store in package observed.
type Observed interface {
	// Select returns the objects of each selection, by its name, or why they
	// cannot be told. It makes no request.
	Select(user types.UID, selections []catalog.Selection) (objects map[string]any, missing map[string]string)
	// Forget ends what a custom resource looks at.
	Forget(user types.UID)
}
