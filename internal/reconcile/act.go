package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/customresource"
	"github.com/chartwright/chartwright/internal/helm"
	"github.com/chartwright/chartwright/internal/metrics"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/release"
)

// act carries out a step. It returns true where the step is done and another
// look is worth it at once.
func (r *Reconciler) act(ctx context.Context, v *view, d plan.Decision) (bool, error) {
	switch d.Step {
	case plan.StepAddFinalizer:
		return true, r.patchFinalizer(ctx, v, guard)
	case plan.StepRemoveFinalizer:
		return false, r.patchFinalizer(ctx, v, unguard)
	case plan.StepInterrupt:
		r.Pool.Interrupt(v.release, v.cr.GetUID(), d.Change)
		return false, nil
	case plan.StepWait:
		return false, nil
	}
	r.run(ctx, v, d)
	return false, nil
}

// guard puts our finalizer on a custom resource, in place of the operator-sdk's:
// in one write, so that there is always one.
func guard(cr client.Object) bool {
	added := controllerutil.AddFinalizer(cr, api.Finalizer)
	return removeFinalizers(cr, api.FinalizersOperatorSDK) || added
}

// unguard lets a custom resource go.
func unguard(cr client.Object) bool {
	return removeFinalizers(cr, append([]string{api.Finalizer}, api.FinalizersOperatorSDK...))
}

func removeFinalizers(cr client.Object, finalizers []string) bool {
	removed := false
	for _, finalizer := range finalizers {
		removed = controllerutil.RemoveFinalizer(cr, finalizer) || removed
	}
	return removed
}

// patchFinalizer changes the finalizers. It names the resourceVersion, since
// their list is written whole.
func (r *Reconciler) patchFinalizer(ctx context.Context, v *view, change func(client.Object) bool) error {
	changed := v.cr.DeepCopy()
	if !change(changed) {
		return nil
	}
	if !customresource.AllFinalizers(v.cr) {
		return fmt.Errorf("patch the finalizers: %w", customresource.TooLarge(v.cr))
	}
	patch := client.MergeFromWithOptions(v.cr, client.MergeFromWithOptimisticLock{})
	err := r.Patcher.Patch(ctx, changed, patch)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("patch the finalizers: %w", err)
	}
	r.remember(ctx, v.key, changed)
	return nil
}

// run begins an action, which calls for another pass when it has run for long,
// and when it has ended.
func (r *Reconciler) run(ctx context.Context, v *view, d plan.Decision) {
	a := actions[d.Step]
	logger := log.FromContext(ctx).WithValues("release", v.release.Name, "action", d.Step)
	var after time.Duration
	started := r.Pool.Run(v.release, v.cr.GetUID(), d.Step, r.inputs(v, d.Step), r.turnOf(v, d), func(ctx context.Context, lend func() func()) {
		logger.V(1).Info("action begins")
		// The pass that would tell is a later one where it had to wait.
		r.Wake(v.key, slow)
		began := r.Now()
		err := recoverable(func() error {
			if !a.values {
				request := r.request(v, d, slotLender(lend))
				request.CurrentValues = func() (map[string]any, error) {
					if v.facts == nil {
						return nil, fmt.Errorf("%w: the values cannot be computed", chart.ErrInvalidValues)
					}
					return r.valuesOf(ctx, v)
				}
				return a.do(r, ctx, v, request)
			}
			if customresource.Large(v.cr) {
				lendBoth, end, err := r.Pool.large.take(ctx, lend)
				if err != nil {
					return err
				}
				defer end()
				lend = lendBoth
			}
			request := r.request(v, d, slotLender(lend))
			var err error
			if request.Values, err = r.valuesOf(ctx, v); err != nil {
				return err
			}
			return a.do(r, ctx, v, request)
		})
		r.Metrics.ActionDone(r.kindName(), string(d.Step), outcome(err), r.Now().Sub(began))
		r.conclude(log.IntoContext(ctx, logger), v, d, err)
		switch {
		case errors.Is(err, release.ErrStale):
			after = catchUp
		case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
			after = 10 * catchUp
		}
	}, func() { r.Wake(v.key, after) })
	switch {
	case !started:
		// The release was free a moment ago, and is not any more.
		r.Wake(v.key, catchUp)
	case plan.Limited(d.Step, v.observation):
		r.memory.spend(v.cr.GetUID(), r.Now())
	}
}

// turnOf returns when a step gets a slot of the pool.
func (r *Reconciler) turnOf(v *view, d plan.Decision) turn {
	return turn{urgency: urgencyOf(v, d), namespace: v.release.Namespace, kind: r.kindName()}
}

func urgencyOf(v *view, d plan.Decision) urgency {
	switch d.Step {
	case plan.StepRollback, plan.StepResume, plan.StepRefuse, plan.StepTest:
		if d.State == plan.StateFailed {
			return usual
		}
		return urgent
	case plan.StepUpgrade:
		switch {
		case d.State == plan.StateFailed:
			return usual
		case d.State == plan.StateOutOfSync && !asked(v):
			return background
		}
		return urgent
	case plan.StepRepair:
		return prompt
	case plan.StepVerify:
		if v.observation.VerifyRequested {
			return urgent
		}
		return background
	case plan.StepSign:
		return background
	default:
		return usual
	}
}

// catchUp is how long to wait for the index where it was behind. Most often
// the change that it missed calls for a pass sooner.
const catchUp = 500 * time.Millisecond

// recoverable turns a panic into an error: one action must not end them all.
func recoverable(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("internal error: %v", p)
		}
	}()
	return do()
}

// outcome is how the metrics call the end of an action.
func outcome(err error) string {
	switch {
	case err == nil:
		return metrics.OutcomeDone
	case errors.Is(err, release.ErrStale), errors.Is(err, helm.ErrOrphaned):
		return metrics.OutcomeStale
	case errors.Is(err, ErrShutdown), errors.Is(err, helm.ErrInterrupted):
		return metrics.OutcomeInterrupted
	default:
		return metrics.OutcomeFailed
	}
}
