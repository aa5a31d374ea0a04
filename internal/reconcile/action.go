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
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/decide"
	"github.com/chartwright/chartwright/internal/helm"
)

// action is one of Helm's actions as an operator runs it.
type action struct {
	step decide.Step
	do   func(*Reconciler, context.Context, *view) error
	// done and failed are the reasons of the events that tell how it ended. What
	// is no news when done has no done.
	done, failed string
}

// actions holds the steps that are actions, by their name.
var actions = map[decide.Step]action{
	decide.StepInstall: {
		step: decide.StepInstall,
		do: func(r *Reconciler, ctx context.Context, v *view) error {
			return r.Helm.Install(ctx, r.request(v))
		},
		done: api.EventInstalled, failed: api.EventInstallFailed,
	},
	decide.StepUpgrade: {
		step: decide.StepUpgrade,
		do: func(r *Reconciler, ctx context.Context, v *view) error {
			return r.Helm.Upgrade(ctx, r.request(v))
		},
		done: api.EventUpgraded, failed: api.EventUpgradeFailed,
	},
	decide.StepUninstall: {
		step: decide.StepUninstall,
		do: func(r *Reconciler, ctx context.Context, v *view) error {
			return r.Helm.Uninstall(ctx, r.request(v))
		},
		done: api.EventUninstalled, failed: api.EventUninstallFailed,
	},
	decide.StepAdopt: {
		step: decide.StepAdopt,
		do: func(r *Reconciler, ctx context.Context, v *view) error {
			return r.Helm.Adopt(ctx, r.request(v))
		},
		done: api.EventAdopted, failed: api.EventAdoptionFailed,
	},
	decide.StepRepair: {
		step: decide.StepRepair,
		do: func(r *Reconciler, ctx context.Context, v *view) error {
			repaired, err := r.Helm.Repair(ctx, r.request(v), v.damage)
			r.reportRepairs(v, repaired)
			return err
		},
		failed: api.EventRepairFailed,
	},
	decide.StepVerify: {
		step: decide.StepVerify,
		do: func(r *Reconciler, ctx context.Context, v *view) error {
			return r.Helm.Verify(ctx, r.request(v))
		},
		failed: api.EventRepairFailed,
	},
	decide.StepUnlock: {
		step: decide.StepUnlock,
		do: func(r *Reconciler, ctx context.Context, v *view) error {
			return r.Helm.MarkFailed(ctx, r.request(v), v.history[0],
				"Interrupted: the action ended with the process that ran it")
		},
		done: api.EventInterrupted, failed: api.EventInterrupted,
	},
}

// conclude tells the world how an action ended: in memory, for the next pass,
// and by one event where it is news.
func (r *Reconciler) conclude(ctx context.Context, v *view, a action, err error) {
	logger := log.FromContext(ctx)
	uid := v.cr.GetUID()
	switch {
	case err == nil:
		r.memory.succeeded(uid, decide.Repairs(a.step))
		switch a.step {
		case decide.StepInstall, decide.StepUpgrade, decide.StepAdopt, decide.StepVerify:
			r.memory.appliedAll(uid, r.Now())
		}
		if a.done == "" {
			logger.V(1).Info("action done")
			return
		}
		logger.Info("action done")
		r.emit(v, a.done, r.doneNote(v, a))
		if a.step == decide.StepInstall || a.step == decide.StepUpgrade {
			r.tellOverrides(v)
		}
		if a.step == decide.StepUpgrade {
			if err := r.Helm.Prune(ctx, r.request(v), r.Kind.HistoryLimit()); err != nil {
				logger.Error(err, "history not pruned")
			}
		}
	case errors.Is(err, helm.ErrNotAdoptable):
		logger.Info("release left alone", "reason", err.Error())
		r.foreign.add(v.history[0].UID)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		// The custom resource goes next, or the namespace comes back.
		logger.V(1).Info("action waits for its namespace to go", "reason", err.Error())
	case errors.Is(err, helm.ErrStale):
		// Nothing was changed; what changed meanwhile calls for another look.
		logger.V(1).Info("action gave way", "reason", err.Error())
	case errors.Is(err, ErrShutdown):
		logger.Info("action interrupted", "reason", err.Error())
	default:
		f := explain(a, err)
		f.Aim = decide.Aim(a.step, v.digests.Input)
		f.At = r.Now()
		news := r.memory.put(uid, decide.Repairs(a.step), f)
		logger.Error(err, "action failed", "reason", f.reason)
		if news {
			r.Recorder.Event(v.cr, corev1.EventTypeWarning, f.reason, note(f.message, err))
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

func (r *Reconciler) doneNote(v *view, a action) string {
	switch a.step {
	case decide.StepUninstall:
		return fmt.Sprintf("Release %s is uninstalled", v.release.Name)
	case decide.StepAdopt:
		return fmt.Sprintf("Release %s, which nobody managed, is taken over", v.release.Name)
	case decide.StepUnlock:
		return fmt.Sprintf("Revision %d of release %s was interrupted and is tried again", v.history[0].Revision, v.release.Name)
	}
	revision := 1
	if history := r.Index.History(v.release.Namespace, v.release.Name); len(history) > 0 {
		revision = history[0].Revision
	}
	return fmt.Sprintf("Release %s is at revision %d of chart %s-%s", v.release.Name, revision, r.Kind.Chart.Name(), r.Kind.Chart.Version())
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
		{helm.ErrInvalidValues, api.ReasonInvalidValues},
		{helm.ErrRender, api.ReasonRenderFailed},
		{helm.ErrConflict, api.ReasonObjectConflict},
		{helm.ErrTooLarge, api.ReasonTooLarge},
		{helm.ErrNotAllowed, api.ReasonNotAllowed},
		{helm.ErrRefused, api.ReasonRefused},
	} {
		if errors.Is(err, known.err) {
			f.reason, f.stalled = known.reason, true
		}
	}
	return f
}

// maxNote is the API server's limit of an event's note, in bytes.
const maxNote = 1024

// note is an event's text: what happened, with the end of Helm's log.
func note(message string, err error) string {
	var failed *helm.ActionError
	if errors.As(err, &failed) && len(failed.Log) > 0 {
		message += "\nHelm's log ended with:\n" + strings.Join(failed.Log, "\n")
	}
	return cut(message)
}

func cut(message string) string {
	if len(message) > maxNote {
		message = strings.ToValidUTF8(message[:maxNote-len("…")], "") + "…"
	}
	return message
}
