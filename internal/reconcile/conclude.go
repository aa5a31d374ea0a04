package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/helm"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/reconcile/queue"
	"github.com/chartwright/chartwright/internal/reconcile/status"
	"github.com/chartwright/chartwright/internal/release"
)

// conclude records how an action ended: in memory for the next reconciliation, in the
// log, and in an event if it is news.
func (r *Reconciler) conclude(ctx context.Context, v *snapshot, d plan.Decision, err error) {
	logger := log.FromContext(ctx)
	uid := v.CR.GetUID()
	a := actions[d.Step]
	// A transient error says nothing about the release, whatever wraps it.
	transient := apply.Retryable(err)
	stale := errors.Is(err, release.ErrStale)
	lasting := r.memory.stale(uid, stale, plan.TargetOf(d.Step, v.Observation), r.Now())
	switch {
	case err == nil:
		r.succeeded(ctx, v, d)
	case errors.Is(err, helm.ErrNotAdoptable) && !transient:
		logger.Info("release not adoptable", "reason", err.Error())
		r.foreign.put(v.History[0].UID, struct{}{})
	case errors.Is(err, release.ErrUntrusted) && !transient && !r.concludeUntrusted(v, d, err):
		logger.Info("release record not authenticated", "reason", err.Error())
	case apply.AnswerOf(err) == apply.Terminating && r.isTerminating(ctx, v.CR.GetNamespace()):
		// The custom resource is deleted next.
		logger.V(1).Info("action postponed: namespace is terminating", "reason", err.Error())
	case errors.Is(err, helm.ErrOrphaned):
		logger.Info("release orphaned", "reason", err.Error())
		r.memory.orphan(uid)
	case stale && !lasting:
		// The action has changed nothing. The concurrent change causes a reconciliation.
		logger.V(1).Info("action aborted: release changed concurrently", "reason", err.Error())
		r.reportConflict(v, err)
	case errors.Is(err, queue.ErrShutdown):
		logger.Info("action interrupted", "reason", err.Error())
	case errors.Is(err, helm.ErrInterrupted):
		reason := api.EventInterrupted
		if errors.Is(err, errAborted) {
			reason = api.EventAborted
		}
		logger.Info("action interrupted", "reason", err.Error())
		r.Recorder.Event(v.CR, corev1.EventTypeNormal, reason, note(err.Error(), err))
	case errors.Is(err, helm.ErrTestsFailed):
		// The record stores the result, so nothing has to be retried.
		logger.Info("tests failed", "reason", err.Error())
		r.Recorder.Event(v.CR, corev1.EventTypeWarning, a.failed, note(err.Error(), err))
	case waitsForUser(err):
		logger.Info("action waits for a user", "reason", err.Error())
		r.fail(v, d, r.explainGuard(v, a, err), err)
	default:
		f := explain(a, err)
		if f.Reason == api.ReasonUninstallFailed && deleteHooks(r.Kind) {
			f.Message += fmt.Sprintf("; the uninstall is retried. To skip the chart's delete hooks, set the annotation %s to \"true\"", api.AnnotationUninstallDisableHooks)
		}
		if advice := r.advice(v, err); advice != "" {
			f.Message, f.Forbidden = f.Message+". "+advice, true
		}
		f.Stale = stale
		f.Foreign = errors.Is(err, apply.ErrForeign)
		f.Unserved = apply.AnswerOf(err) == apply.Unserved
		logger.Error(err, "action failed", "reason", f.Reason)
		r.fail(v, d, f, err)
	}
}

// reportConflict emits an event if the API server has rejected a write because of another client.
// Otherwise only the operator's cache was behind.
func (r *Reconciler) reportConflict(v *snapshot, err error) {
	if apply.AnswerOf(err) != apply.None {
		r.Recorder.Event(v.CR, corev1.EventTypeWarning, api.EventInterrupted, note(err.Error(), err))
	}
}

// isTerminating reports whether a namespace, empty for none, is being deleted.
func (r *Reconciler) isTerminating(ctx context.Context, namespace string) bool {
	if namespace == "" {
		return false
	}
	terminating, err := r.Actions.Terminating(ctx, namespace)
	return err == nil && terminating
}

// waitsForUser reports whether only a user, or a change of the guarded objects, can end a
// failure.
func waitsForUser(err error) bool {
	_, approval := errors.AsType[*helm.ApprovalError](err)
	_, protected := errors.AsType[*helm.ProtectedError](err)
	return approval || protected
}

// fail remembers a failure, and emits an event if it is news.
func (r *Reconciler) fail(v *snapshot, d plan.Decision, f status.Failure, err error) {
	f.Target = plan.TargetOf(d.Step, v.Observation)
	f.At = r.Now()
	if r.memory.put(v.CR.GetUID(), plan.Repairs(d.Step), f) {
		r.Recorder.Event(v.CR, corev1.EventTypeWarning, f.Reason, note(f.Message, err))
	}
}

// succeeded records a successful action, emits its event, and prunes old revisions.
func (r *Reconciler) succeeded(ctx context.Context, v *snapshot, d plan.Decision) {
	logger := log.FromContext(ctx)
	a := actions[d.Step]
	now := r.Now()
	r.memory.ifKnown(v.CR.GetUID(), func(m *remembered) {
		// The other steps change records only, or nothing.
		if plan.Changes(d.Step) || plan.Repairs(d.Step) {
			*m.about(plan.Repairs(d.Step)) = nil
		}
		if a.applies || d.Step == plan.StepRepair {
			m.touched = now
		}
		if a.applies {
			m.applied = now
		}
		m.uninstalled = m.uninstalled || d.Step == plan.StepUninstall && v.Observation.Deleting
	})
	if request := v.Observation.Request; d.Step == plan.StepRefuse && request != nil && request.Expired {
		r.emit(v, api.EventRollbackSkipped, noteOvertaken(v))
	}
	if a.done == "" || v.Observation.Unsearched || d.Step == plan.StepResume && v.Marks.Held == nil {
		logger.V(1).Info("action done")
		return
	}
	logger.Info("action done")
	r.emit(v, a.done, r.doneNote(v, d))
	r.reportApproval(v, d)
	if d.Step == plan.StepInstall || d.Step == plan.StepUpgrade {
		r.reportOverrides(v)
	}
	if a.prunes {
		if err := r.Actions.Prune(ctx, r.request(v, d, helm.NoOp{}), r.Kind.HistoryLimit()); err != nil {
			logger.Error(err, "history not pruned")
		}
	}
}

// reportOverrides emits a warning that the watches entry overrides the spec. It shows
// the names only, because the values may be secret.
func (r *Reconciler) reportOverrides(v *snapshot) {
	if len(r.Kind.OverrideValues) == 0 {
		return
	}
	names := slices.Sorted(maps.Keys(r.Kind.OverrideValues))
	r.Recorder.Event(v.CR, corev1.EventTypeWarning, api.EventOverrideValuesUsed,
		status.Cut("overrideValues in the watches file take precedence over the spec for: "+strings.Join(names, ", ")))
}

func (r *Reconciler) doneNote(v *snapshot, d plan.Decision) string {
	name := v.Release.Name
	switch d.Step {
	case plan.StepUninstall:
		if to := v.moveTo(d); to != "" {
			return fmt.Sprintf("Release %s is uninstalled in namespace %s, and moves to namespace %s", name, v.Release.Namespace, to)
		}
		return fmt.Sprintf("Release %s is uninstalled", name)
	case plan.StepOrphan:
		return fmt.Sprintf("Release %s is orphaned: its objects stay", name)
	case plan.StepAdopt:
		return fmt.Sprintf("Release %s is adopted", name)
	case plan.StepUnlock:
		return fmt.Sprintf("Revision %d of release %s was interrupted and is retried", v.History[0].Revision, name)
	case plan.StepResume:
		return fmt.Sprintf("Release %s follows the spec again", name)
	case plan.StepTest:
		return fmt.Sprintf("Revision %d of release %s was tested: see the condition %s", v.History[0].Revision, name, api.ConditionTested)
	}
	revision := 1
	if history := r.Index.History(v.Release.Namespace, name); len(history) > 0 {
		revision = history[0].Revision
	}
	if d.Step == plan.StepRollback {
		text := fmt.Sprintf("Release %s is rolled back to revision %d, as revision %d, and held", name, d.Revision, revision)
		if d.State == plan.StateRollbackRequested && v.unclear {
			text += noteUnclear
		}
		return text
	}
	text := fmt.Sprintf("Release %s is at revision %d with chart %s-%s", name, revision, r.Kind.Chart.Name(), r.Kind.Chart.Version())
	if d.State == plan.StateUnmanaged {
		text += fmt.Sprintf(", which replaces revision %d of another program", v.History[0].Revision)
	}
	return text
}

func (r *Reconciler) emit(v *snapshot, reason, message string) {
	r.Recorder.Event(v.CR, corev1.EventTypeNormal, reason, message)
}

// explain returns the failure that the conditions report for an error.
func explain(a action, err error) status.Failure {
	f := status.Failure{Reason: a.failed, Message: apply.Explain(err)}
	switch {
	case apply.Retryable(err):
		f.Transient = true
		return f
	case errors.Is(err, release.ErrStale):
		f.Transient = true
		if _, waits := errors.AsType[*dependencyError](err); waits {
			f.Reason = api.ReasonDependencyNotReady
		}
		return f
	case apply.AnswerOf(err) == apply.Terminating:
		f.Reason, f.Transient = api.ReasonNamespaceTerminating, true
		f.Message = "A namespace of the release is being deleted. The operator continues when it has been created again: " + f.Message
		return f
	}
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
		{helm.ErrApprovalRequired, api.ReasonApprovalRequired},
		{helm.ErrProtected, api.ReasonObjectProtected},
	} {
		if errors.Is(err, known.err) {
			f.Reason, f.Stalled = known.reason, true
		}
	}
	if errors.Is(err, helm.ErrWaiting) {
		f.Reason = api.ReasonWaitingForObjects
	}
	return f
}

// concludeUntrusted remembers that a record must not be used. It reports whether the
// failure counts and is retried with backoff.
func (r *Reconciler) concludeUntrusted(v *snapshot, d plan.Decision, err error) (failed bool) {
	why := err.Error()
	if action, ok := errors.AsType[*helm.ActionError](err); ok {
		why = action.Error()
	}
	if d.Step == plan.StepRollback {
		for _, record := range v.History {
			if record.Revision == d.Revision {
				r.unrepeatable.add(record, v.digests.Input, why)
			}
		}
		// A request is refused next, and a failed upgrade is retried.
		return d.State == plan.StateHeld
	}
	r.untrusted.add(v.History[0], "", why)
	what := "; the release is rendered from the chart again"
	if v.Observation.Holding() || v.Observation.Postponed {
		what = "; nothing from it is applied until the release is upgraded"
	}
	r.Recorder.Event(v.CR, corev1.EventTypeWarning, api.EventRecordUntrusted, status.Cut(fmt.Sprintf("Revision %d: %s%s", v.History[0].Revision, why, what)))
	return false
}

// advice returns a sentence with the rules that would have prevented a forbidden
// error, empty for other errors.
func (r *Reconciler) advice(v *snapshot, err error) string {
	if r.Permissions == nil {
		return ""
	}
	account := ""
	if v.serviceAccount != "" {
		account = "system:serviceaccount:" + v.Release.Namespace + ":" + v.serviceAccount
	}
	return r.Permissions.Refused(err, account)
}

// note returns the note of an event: the message and the end of Helm's log. A note
// that is too long loses the first lines of the log; the message gets half of the note.
func note(message string, err error) string {
	var failed *helm.ActionError
	if !errors.As(err, &failed) || len(failed.Log) == 0 {
		return status.Cut(message)
	}
	const heading = "\nHelm's log ended with:\n"
	log := strings.Join(failed.Log, "\n")
	if len(message)+len(heading)+len(log) <= status.MaxNote {
		return message + heading + log
	}
	message = api.Truncate(message, status.MaxNote/2)
	room := status.MaxNote - len(message) - len(heading)
	lines := failed.Log
	for len(lines) > 1 && len(log) > room {
		lines = lines[1:]
		log = strings.Join(lines, "\n")
	}
	return message + heading + api.Truncate(log, room)
}
