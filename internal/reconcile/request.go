package reconcile

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/chartwright/chartwright/internal/api/annotations"
	"github.com/chartwright/chartwright/internal/helm"
	"github.com/chartwright/chartwright/internal/inputs/valuesfrom"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/reconcile/status"
	"github.com/chartwright/chartwright/internal/watches"
)

// request returns the request for a Helm action, without values.
func (r *Reconciler) request(v *snapshot, d plan.Decision, slot helm.SlotLender) helm.Request {
	steered := v.steered(d.Step)
	redactor := r.redactorFor(v, d.Step)
	return helm.Request{
		Target: helm.Target{
			Owner:          r.owner(v),
			Release:        v.Release.Name,
			Namespace:      v.Release.Namespace,
			ServiceAccount: v.serviceAccount,
		},
		Input: helm.Input{
			Chart:         r.Kind.Chart,
			Digests:       v.digests,
			Integers:      r.Kind.IntegerNumbers(),
			NumbersChosen: r.Kind.Numbers != "",
			Overrides:     r.Kind.Overrides,
		},
		Options: helm.Options{
			Timeout: r.Kind.ActionTimeout(),
			Allow:   r.Kind.Allow,
			Ignore:  r.Kind.Drift.Ignore,
			CRDs:    r.Kind.CRDs,
			// A namespace that an install created is deleted, even if the spec has changed.
			CreateNamespace: v.createNamespace || v.Observation.Deleting && r.Kind.CreateNamespace != nil,
			FormerManagers:  r.Kind.FormerManagers,
			Guard:           r.Kind.Guard,
			Approval:        r.Kind.Approval,
			Approve:         v.Requests.Approve,
			Automatic:       d.Step == plan.StepRollback && d.State != plan.StateRollbackRequested,
			Marks:           r.marksAfter(v, d),
			NeverReady:      len(v.History) > 0 && r.memory.of(v.CR.GetUID()).progress.neverReady(v.History[0].Revision),
			DisableHooks:    steered.DisableHooks,
			Description:     steered.Description,
			TakeOwnership:   v.Requests.TakeOwnership && r.Kind.Allow.TakeOwnership == watches.TakeOwnershipOnRequest,
			Force:           v.forced() || v.forces(d),
			Verify:          v.Observation.VerifyRequested,
			OwnedOnly:       v.Observation.AccountUnknown,
			RefuseHooks:     r.Kind.Chart == nil,
			Deleting:        v.Observation.Deleting,
			DeleteData:      v.Requests.DeleteData,
			Uninstall:       r.uninstall(v),
			MoveTo:          v.moveTo(d),
			WaitForDelete:   v.Requests.UninstallWait,
		},
		Notifier: notifier{Reconciler: r, view: v, redactor: redactor},
		Redactor: redactor,
		Slot:     slot,
	}
}

// moveTo returns the new namespace of the release, empty if the step does not move the
// release.
func (v *snapshot) moveTo(d plan.Decision) string {
	if d.Step != plan.StepUninstall || v.Observation.Deleting {
		return ""
	}
	return v.Observation.MoveTo
}

// uninstall returns how to uninstall the release. If the account is unknown, objects of
// hooks stay: the operator must not delete them with its own account, and an unknown entry
// may keep them.
func (r *Reconciler) uninstall(v *snapshot) watches.Uninstall {
	uninstall := r.Kind.Uninstall
	if v.Observation.AccountUnknown {
		uninstall.HookObjects = watches.HookObjectsKeep
	}
	return uninstall
}

// notifier emits the warnings of an action as events of the custom resource, and
// reports its hooks to the pool.
type notifier struct {
	*Reconciler
	view     *snapshot
	redactor *redactor
}

// Warn emits an event.
func (n notifier) Warn(reason, message string) {
	n.Recorder.Event(n.view.CR, corev1.EventTypeWarning, reason, status.Cut(n.redactor.Redact(message)))
}

// HookStarted observes the hook.
func (n notifier) HookStarted(wait helm.HookWait) func(failed bool) string {
	return n.waitForHook(n.view, wait, n.redactor.Redact)
}

// forces reports whether an annotation of the operator-sdk allows the step to recreate
// objects that cannot be changed otherwise. Rollbacks that a user has requested are
// not forced.
func (v *snapshot) forces(d plan.Decision) bool {
	switch d.Step {
	case plan.StepUpgrade:
		return v.Requests.ForceUpgrades
	case plan.StepRollback:
		return v.Requests.ForceRollbacks && d.State == plan.StateFailed
	default:
		return false
	}
}

// steered returns the annotations for one of Helm's actions.
func (v *snapshot) steered(step plan.Step) annotations.Action {
	switch step {
	case plan.StepInstall:
		return v.Requests.Install
	case plan.StepUpgrade:
		return v.Requests.Upgrade
	case plan.StepUninstall:
		action := v.Requests.Uninstall
		// Hooks must not run as the operator if the account is unknown. Without a chart, only
		// an annotation skips them, see helm.Options.RefuseHooks.
		action.DisableHooks = action.DisableHooks || v.Observation.AccountUnknown && v.digests.Chart != ""
		return action
	default:
		return annotations.Action{}
	}
}

// redactor removes secret values from the messages of an action. An action on a stored
// revision uses the values of that time, and the Secret may have changed or been
// deleted since. Therefore every stored value that is not in the spec or in the
// watches file counts as secret.
type redactor struct {
	// stored returns the secrets in stored values; nil if the action renders the chart.
	stored func(map[string]any) valuesfrom.Secrets
	// authored returns what the author of the custom resource has written.
	authored func() []string

	mu      sync.Mutex
	secrets valuesfrom.Secrets
}

// redactorFor returns the redactor of one action on a custom resource.
func (r *Reconciler) redactorFor(v *snapshot, step plan.Step) *redactor {
	redactor := &redactor{secrets: v.Secrets, authored: v.Authored}
	renders := step == plan.StepInstall || step == plan.StepUpgrade
	if len(r.Kind.Sources) > 0 && !renders {
		redactor.stored = func(values map[string]any) valuesfrom.Secrets {
			// If the spec cannot be expanded, every value counts as secret.
			object, _ := content(v)
			spec, _ := object["spec"].(map[string]any)
			return valuesfrom.SecretsBeside(values, spec, r.Kind.Overrides)
		}
	}
	return redactor
}

// AddStoredValues adds the secrets in the values of a revision.
func (h *redactor) AddStoredValues(values map[string]any) {
	if h.stored != nil {
		h.add(h.stored(values))
	}
}

// AddSecret adds the data of a Secret that a template has looked up.
func (h *redactor) AddSecret(data map[string]any) { h.add(valuesfrom.SecretsIn(data)) }

func (h *redactor) add(secrets valuesfrom.Secrets) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.secrets = slices.Concat(h.secrets, secrets)
}

func (h *redactor) known() valuesfrom.Secrets {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.secrets
}

// Redact removes secret values from a text.
func (h *redactor) Redact(text string) string { return h.known().RedactExcept(text, h.authored) }

// RedactParts also removes parts of secret values.
func (h *redactor) RedactParts(text string) string { return h.known().RedactParts(text, h.authored) }
