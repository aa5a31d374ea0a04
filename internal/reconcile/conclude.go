package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/helm"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/release"
)

// conclude tells the world how an action ended: in memory, for the next pass,
// and by one event where it is news.
func (r *Reconciler) conclude(ctx context.Context, v *view, d plan.Decision, err error) {
	logger := log.FromContext(ctx)
	uid := v.cr.GetUID()
	a := actions[d.Step]
	switch {
	case err == nil:
		r.succeeded(ctx, v, d)
	case errors.Is(err, helm.ErrNotAdoptable):
		logger.Info("release left alone", "reason", err.Error())
		r.foreign.add(v.history[0].UID)
	case errors.Is(err, release.ErrUntrusted) && !r.concludeUntrusted(v, d, err):
		logger.Info("release record not authenticated", "reason", err.Error())
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		// The custom resource goes next, or the namespace comes back.
		logger.V(1).Info("action waits for its namespace to go", "reason", err.Error())
	case errors.Is(err, helm.ErrOrphaned):
		logger.Info("release left in place", "reason", err.Error())
		r.memory.orphan(uid)
	case errors.Is(err, release.ErrStale):
		// Nothing was changed; what changed meanwhile calls for another look.
		logger.V(1).Info("action gave way", "reason", err.Error())
	case errors.Is(err, ErrShutdown):
		logger.Info("action interrupted", "reason", err.Error())
	case errors.Is(err, helm.ErrInterrupted):
		reason := api.EventInterrupted
		if errors.Is(err, errAborted) {
			reason = api.EventAborted
		}
		logger.Info("action interrupted", "reason", err.Error())
		r.Recorder.Event(v.cr, corev1.EventTypeNormal, reason, note(err.Error(), err))
	case errors.Is(err, helm.ErrTestsFailed):
		// It is an outcome, and stands on the record.
		logger.Info("tests failed", "reason", err.Error())
		r.Recorder.Event(v.cr, corev1.EventTypeWarning, a.failed, note(err.Error(), err))
	default:
		f := explain(a, err)
		if f.reason == api.ReasonUninstallFailed && r.Kind.Chart.Features.DeleteHooks {
			f.message += fmt.Sprintf("; it is tried again. To go on without the chart's delete hooks, set the annotation %s to \"true\"", api.AnnotationUninstallDisableHooks)
		}
		if advice := r.advice(v, err); advice != "" {
			f.message, f.forbidden = f.message+". "+advice, true
		}
		f.unserved = meta.IsNoMatchError(err) || apierrors.IsNotFound(err)
		f.Aim = plan.AimOf(d.Step, v.observation)
		f.At = r.Now()
		news := r.memory.put(uid, plan.Repairs(d.Step), f)
		logger.Error(err, "action failed", "reason", f.reason)
		if news {
			r.Recorder.Event(v.cr, corev1.EventTypeWarning, f.reason, note(f.message, err))
		}
	}
}

// succeeded remembers that an action went well, tells of it, and cleans up after
// it.
func (r *Reconciler) succeeded(ctx context.Context, v *view, d plan.Decision) {
	logger := log.FromContext(ctx)
	uid := v.cr.GetUID()
	a := actions[d.Step]
	if plan.Changes(d.Step) || plan.Repairs(d.Step) {
		// What only marks a record, or asks, mends nothing.
		r.memory.succeeded(uid, plan.Repairs(d.Step))
	}
	if a.applies || d.Step == plan.StepRepair {
		r.memory.touch(uid, r.Now())
	}
	if a.applies {
		r.memory.appliedAll(uid, r.Now())
	}
	if d.Step == plan.StepUninstall && v.observation.Deleting {
		r.memory.uninstall(uid)
	}
	if request := v.observation.Request; d.Step == plan.StepRefuse && request != nil && request.Over {
		r.emit(v, api.EventRollbackSkipped, noteOvertaken(v))
	}
	if a.done == "" || v.observation.Unsearched || d.Step == plan.StepResume && v.marks.Held == nil {
		logger.V(1).Info("action done")
		return
	}
	logger.Info("action done")
	r.emit(v, a.done, r.doneNote(v, d))
	if d.Step == plan.StepInstall || d.Step == plan.StepUpgrade {
		r.tellOverrides(v)
	}
	if a.prunes {
		if err := r.Helm.Prune(ctx, r.request(v, d, helm.NoOp{}), r.Kind.HistoryLimit()); err != nil {
			logger.Error(err, "history not pruned")
		}
	}
}

// tellOverrides warns that the watches entry wins over the spec. It names the
// values and does not show them, for they may be secret.
func (r *Reconciler) tellOverrides(v *view) {
	if len(r.Kind.OverrideValues) == 0 {
		return
	}
	names := slices.Sorted(maps.Keys(r.Kind.OverrideValues))
	r.Recorder.Event(v.cr, corev1.EventTypeWarning, api.EventOverrideValuesUsed,
		cut("Overridden by the operator's watches file, whatever the spec says: "+strings.Join(names, ", ")))
}

func (r *Reconciler) doneNote(v *view, d plan.Decision) string {
	name := v.release.Name
	switch d.Step {
	case plan.StepUninstall:
		return fmt.Sprintf("Release %s is uninstalled", name)
	case plan.StepOrphan:
		return fmt.Sprintf("Release %s and its objects are left as they are", name)
	case plan.StepAdopt:
		return fmt.Sprintf("Release %s, which nobody managed, is taken over", name)
	case plan.StepUnlock:
		return fmt.Sprintf("Revision %d of release %s was interrupted and is tried again", v.history[0].Revision, name)
	case plan.StepResume:
		return fmt.Sprintf("Release %s follows the spec again", name)
	case plan.StepTest:
		return fmt.Sprintf("Revision %d of release %s was tested: see the condition %s", v.history[0].Revision, name, api.ConditionTested)
	}
	revision := 1
	if history := r.Index.History(v.release.Namespace, name); len(history) > 0 {
		revision = history[0].Revision
	}
	if d.Step == plan.StepRollback {
		text := fmt.Sprintf("Release %s runs revision %d again, as revision %d, and is held there", name, d.Revision, revision)
		if d.State == plan.StateRollbackRequested && v.unclear {
			text += noteUnclear
		}
		return text
	}
	text := fmt.Sprintf("Release %s is at revision %d of chart %s-%s", name, revision, r.Kind.Chart.Name(), r.Kind.Chart.Version())
	if d.State == plan.StateUnmanaged {
		text += fmt.Sprintf(", which takes the place of revision %d, that somebody else has made", v.history[0].Revision)
	}
	return text
}

func (r *Reconciler) emit(v *view, reason, message string) {
	r.Recorder.Event(v.cr, corev1.EventTypeNormal, reason, message)
}

// explain says what an error means to the person who reads the conditions.
func explain(a action, err error) failure {
	f := failure{reason: a.failed, message: err.Error()}
	for _, known := range []struct {
		err    error
		reason string
	}{
		{chart.ErrInvalidValues, api.ReasonInvalidValues},
		{chart.ErrRender, api.ReasonRenderFailed},
		{helm.ErrConflict, api.ReasonObjectConflict},
		{release.ErrTooLarge, api.ReasonTooLarge},
		{helm.ErrNotAllowed, api.ReasonNotAllowed},
		{helm.ErrRefused, api.ReasonRefused},
	} {
		if errors.Is(err, known.err) {
			f.reason, f.stalled = known.reason, true
		}
	}
	if errors.Is(err, helm.ErrWaiting) {
		f.reason = api.ReasonWaitingForObjects
	}
	return f
}
