package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/customresource"
	"github.com/chartwright/chartwright/internal/helm"
	"github.com/chartwright/chartwright/internal/metrics"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/reconcile/queue"
	"github.com/chartwright/chartwright/internal/release"
)

// act carries out a step. It returns true if the step is done and the custom resource
// must be observed again now.
func (r *Reconciler) act(ctx context.Context, v *snapshot, d plan.Decision) (bool, error) {
	switch d.Step {
	case plan.StepAddFinalizer:
		return true, r.patchFinalizer(ctx, v, guard)
	case plan.StepRemoveFinalizer:
		return false, r.patchFinalizer(ctx, v, unguard)
	case plan.StepInterrupt:
		r.Pool.Interrupt(v.Release, v.CR.GetUID(), d.Change)
		return false, nil
	case plan.StepWait:
		return false, nil
	}
	r.run(ctx, v, d)
	return false, nil
}

// guard returns the finalizers with Chartwright's instead of the operator-sdk's. One write makes
// both changes, so that the custom resource is never without a finalizer.
func guard(finalizers []string) []string {
	guarded := slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool { return slices.Contains(api.FinalizersOperatorSDK, f) })
	if !slices.Contains(guarded, api.Finalizer) {
		guarded = append(guarded, api.Finalizer)
	}
	return guarded
}

// unguard returns the finalizers without Chartwright's and the operator-sdk's.
func unguard(finalizers []string) []string {
	return slices.DeleteFunc(guard(finalizers), func(f string) bool { return f == api.Finalizer })
}

// hasFinalizer reports whether a custom resource has one of the finalizers.
func hasFinalizer(cr client.Object, finalizers ...string) bool {
	return slices.ContainsFunc(cr.GetFinalizers(), func(f string) bool { return slices.Contains(finalizers, f) })
}

// patchFinalizer changes the finalizers. The patch contains the resourceVersion,
// because it replaces the whole list.
func (r *Reconciler) patchFinalizer(ctx context.Context, v *snapshot, change func(finalizers []string) []string) error {
	cr := v.CR
	if !customresource.AllFinalizers(cr) {
		var err error
		if cr, err = v.Complete(); err != nil {
			return err
		}
	}
	before := cr.GetFinalizers()
	after := change(before)
	if slices.Equal(before, after) {
		return nil
	}
	if !customresource.AllFinalizers(cr) {
		return fmt.Errorf("patch the finalizers: %w", customresource.TooLarge(cr))
	}
	changed := cr.DeepCopy()
	changed.SetFinalizers(after)
	patch := client.MergeFromWithOptions(cr, client.MergeFromWithOptimisticLock{})
	err := r.Resources.Patch(ctx, changed, patch)
	switch {
	case apply.AnswerOf(err) == apply.Gone:
		return nil
	case err != nil:
		return fmt.Errorf("patch the finalizers: %w", err)
	}
	r.remember(ctx, v.key, changed)
	return nil
}

// removeFinalizers removes our finalizers from an orphaned custom resource. The
// garbage collector may change the finalizers at the same time.
func (r *Reconciler) removeFinalizers(ctx context.Context, v *snapshot) error {
	err := r.patchFinalizer(ctx, v, unguard)
	if apply.AnswerOf(err) == apply.Conflict {
		return fmt.Errorf("%w: %w", release.ErrStale, err)
	}
	return err
}

// orphaned reports whether a custom resource was deleted with propagationPolicy
// Orphan. The API server adds the finalizer orphan in the write that sets the
// deletion timestamp, and the garbage collector removes it soon after, so the
// finalizer is remembered.
func (r *Reconciler) orphaned(cr client.Object) bool {
	if !cr.GetDeletionTimestamp().IsZero() && hasFinalizer(cr, metav1.FinalizerOrphanDependents) {
		r.memory.orphan(cr.GetUID())
	}
	return r.memory.of(cr.GetUID()).orphan
}

// run starts an action. The custom resource is reconciled again when the action has
// ended, and earlier if the action takes long.
func (r *Reconciler) run(ctx context.Context, v *snapshot, d plan.Decision) {
	a := actions[d.Step]
	logger := log.FromContext(ctx).WithValues("release", v.Release.Name, "action", d.Step)
	var after time.Duration
	if customresource.Partial(v.CR) {
		// Many actions can wait for a slot.
		r.readContent(ctx, v)
	}
	started := r.Pool.Run(queue.Task{
		Release: v.Release, Owner: v.CR.GetUID(), Step: d.Step, Inputs: r.inputs(v, d.Step), Key: r.queueKey(v, d), Until: r.Until,
		Done: func() { r.Wake(v.key, after) },
		Action: func(ctx context.Context, slot queue.Slot) {
			ctx = apply.WithRepeats(ctx)
			logger.V(1).Info("action started")
			// If the action was queued, no earlier reconciliation reports its start.
			r.Wake(v.key, slow)
			began := r.Now()
			err := recoverable(func() error {
				if err := r.recheckDependencies(ctx, v, d); err != nil {
					return err
				}
				if !a.values {
					request := r.request(v, d, slot)
					request.CurrentValues = func() (map[string]any, error) {
						if v.facts == nil {
							return nil, fmt.Errorf("%w: the values cannot be computed", chart.ErrInvalidValues)
						}
						return r.valuesOf(ctx, v)
					}
					return a.do(r, ctx, v, request)
				}
				if customresource.Large(v.CR) {
					both, end, err := r.Pool.Exclusive(ctx, slot)
					if err != nil {
						return err
					}
					defer end()
					slot = both
				}
				request := r.request(v, d, slot)
				var err error
				if request.Values, err = r.valuesOf(ctx, v); err != nil {
					return err
				}
				return a.do(r, ctx, v, request)
			})
			r.Metrics.ActionDone(r.kindName(), string(d.Step), outcome(err), r.Now().Sub(began))
			r.conclude(log.IntoContext(ctx, logger), v, d, err)
			if _, exists := r.keys.get(v.CR.GetUID()); !exists {
				r.forget(v.CR.GetUID())
			}
			switch {
			case errors.Is(err, release.ErrStale):
				after = catchUp
			case apply.AnswerOf(err) == apply.Terminating:
				after = 10 * catchUp
			}
		}})
	switch {
	case !started:
		// Another action on the release has started meanwhile.
		r.Wake(v.key, catchUp)
	case plan.Limited(d.Step, v.Observation):
		r.memory.spend(v.CR.GetUID(), r.Now())
	}
}

// queueKey returns the key of an action in the queue for the slots of the pool.
func (r *Reconciler) queueKey(v *snapshot, d plan.Decision) queue.Key {
	return queue.Key{Priority: priorityOf(v, d), Namespace: v.Release.Namespace, Kind: r.kindName()}
}

func priorityOf(v *snapshot, d plan.Decision) queue.Priority {
	switch d.Step {
	case plan.StepRollback, plan.StepResume, plan.StepRefuse, plan.StepTest:
		if d.State == plan.StateFailed {
			return queue.Normal
		}
		return queue.Urgent
	case plan.StepUpgrade:
		switch {
		case d.State == plan.StateFailed:
			return queue.Normal
		case d.State == plan.StateOutOfSync && !requested(v):
			return queue.Background
		}
		return queue.Urgent
	case plan.StepRepair:
		return queue.High
	case plan.StepVerify:
		if v.Observation.VerifyRequested {
			return queue.Urgent
		}
		return queue.Background
	case plan.StepSign:
		return queue.Background
	default:
		return queue.Normal
	}
}

// catchUp is the delay of a retry if the index of records was behind. Usually the
// missing change causes a reconciliation earlier.
const catchUp = 500 * time.Millisecond

// recoverable returns a panic as an error, so that the operator continues to run.
func recoverable(do func() error) (err error) {
	defer release.RecoverPanic(&err)
	return do()
}

// outcome returns the outcome of an action in metrics.
func outcome(err error) string {
	switch {
	case err == nil:
		return metrics.OutcomeDone
	case errors.Is(err, release.ErrStale), errors.Is(err, helm.ErrOrphaned):
		return metrics.OutcomeStale
	case errors.Is(err, queue.ErrShutdown), errors.Is(err, helm.ErrInterrupted):
		return metrics.OutcomeInterrupted
	default:
		return metrics.OutcomeFailed
	}
}
