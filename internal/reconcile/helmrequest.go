package reconcile

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/chartwright/chartwright/internal/api/annotations"
	"github.com/chartwright/chartwright/internal/helm"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/watches"
)

// request returns what Helm's actions need, without values.
func (r *Reconciler) request(v *view, d plan.Decision, lend func() func()) helm.Request {
	steered := v.steered(d.Step)
	hide := r.hidingIn(v, d.Step)
	return helm.Request{
		Owner:     r.owner(v),
		Release:   v.release.Name,
		Namespace: v.release.Namespace,
		Chart:     r.Kind.Chart,
		Digests:   v.digests,
		Overrides: r.Kind.Overrides,
		Timeout:   r.Kind.ActionTimeout(),
		Allow:     r.Kind.Allow,
		Ignore:    r.Kind.Drift.Ignore,
		CRDs:      r.Kind.CRDs,

		// What was made goes, whatever the spec says meanwhile.
		CreateNamespace: v.createNamespace || v.observation.Deleting && r.Kind.CreateNamespace != nil,

		ServiceAccount: v.serviceAccount,
		Marks:          r.marksAfter(v, d),
		NeverReady:     len(v.history) > 0 && r.memory.neverReady(v.cr.GetUID(), v.history[0].Revision),
		DisableHooks:   steered.DisableHooks,
		Description:    steered.Description,
		TakeOwnership:  v.asks.TakeOwnership && r.Kind.Allow.TakeOwnership == watches.TakeOwnershipOnRequest,
		Force:          v.forced() || v.forces(d),
		Verify:         v.observation.VerifyRequested,
		Deleting:       v.observation.Deleting,
		OwnedOnly:      v.accountUnknown,
		Uninstall:      r.Kind.Uninstall,
		WaitForDelete:  v.asks.UninstallWait,
		Lend:           lend,
		Hook:           func(wait helm.HookWait) func(bool) string { return r.waitForHook(v, wait, hide.redact) },
		FormerManagers: r.Kind.FormerManagers,
		Warn: func(reason, what string) {
			r.Recorder.Event(v.cr, corev1.EventTypeWarning, reason, cut(hide.redact(what)))
		},
		Redact:      hide.redact,
		RedactParts: hide.redactParts,
		Read:        hide.read,
		LookedUp:    hide.lookedUp,
	}
}

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
