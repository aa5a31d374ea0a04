package reconcile

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/chartwright/chartwright/internal/api/annotations"
	"github.com/chartwright/chartwright/internal/helm"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/watches"
)

// request returns what Helm's actions need, without values.
func (r *Reconciler) request(v *view, d plan.Decision, slot helm.SlotLender) helm.Request {
	steered := v.steered(d.Step)
	hide := r.hidingIn(v, d.Step)
	return helm.Request{
		Target: helm.Target{
			Owner:          r.owner(v),
			Release:        v.release.Name,
			Namespace:      v.release.Namespace,
			ServiceAccount: v.serviceAccount,
		},
		Input: helm.Input{
			Chart:     r.Kind.Chart,
			Digests:   v.digests,
			Overrides: r.Kind.Overrides,
		},
		Options: helm.Options{
			Timeout: r.Kind.ActionTimeout(),
			Allow:   r.Kind.Allow,
			Ignore:  r.Kind.Drift.Ignore,
			CRDs:    r.Kind.CRDs,
			// What was made goes, whatever the spec says meanwhile.
			CreateNamespace: v.createNamespace || v.observation.Deleting && r.Kind.CreateNamespace != nil,
			FormerManagers:  r.Kind.FormerManagers,
			Marks:           r.marksAfter(v, d),
			NeverReady:      len(v.history) > 0 && r.memory.neverReady(v.cr.GetUID(), v.history[0].Revision),
			DisableHooks:    steered.DisableHooks,
			Description:     steered.Description,
			TakeOwnership:   v.asks.TakeOwnership && r.Kind.Allow.TakeOwnership == watches.TakeOwnershipOnRequest,
			Force:           v.forced() || v.forces(d),
			Verify:          v.observation.VerifyRequested,
			OwnedOnly:       v.accountUnknown,
			Deleting:        v.observation.Deleting,
			Uninstall:       r.Kind.Uninstall,
			WaitForDelete:   v.asks.UninstallWait,
		},
		Notifier: notifier{Reconciler: r, view: v, redactor: hide},
		Redactor: hide,
		Slot:     slot,
	}
}

// notifier reports what an action reports: warnings as events of the custom
// resource, and its hooks to the pool.
type notifier struct {
	*Reconciler
	view     *view
	redactor *hiding
}

// Warn emits an event.
func (n notifier) Warn(reason, message string) {
	n.Recorder.Event(n.view.cr, corev1.EventTypeWarning, reason, cut(n.redactor.Redact(message)))
}

// HookStarted follows the hook.
func (n notifier) HookStarted(wait helm.HookWait) func(failed bool) string {
	return n.waitForHook(n.view, wait, n.redactor.Redact)
}

// slotLender is how an action lends its slot.
type slotLender func() (reacquire func())

// Release gives the slot away.
func (l slotLender) Release() func() { return l() }

// forces tells whether an annotation of the operator-sdk has the step delete and
// make again what cannot be changed otherwise. Of the rollbacks it is for those
// that no person has asked for.
func (v *view) forces(d plan.Decision) bool {
	switch d.Step {
	case plan.StepUpgrade:
		return v.asks.ForceUpgrades
	case plan.StepRollback:
		return v.asks.ForceRollbacks && d.State == plan.StateFailed
	default:
		return false
	}
}

// steered returns what annotations say of one of Helm's actions.
func (v *view) steered(step plan.Step) annotations.Action {
	switch step {
	case plan.StepInstall:
		return v.asks.Install
	case plan.StepUpgrade:
		return v.asks.Upgrade
	case plan.StepUninstall:
		return v.asks.Uninstall
	default:
		return annotations.Action{}
	}
}
