package reconcile

import (
	"cmp"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/plan"
)

// summary is what Ready says, and whether Reconciling and Stalled hold.
type summary struct {
	status  metav1.ConditionStatus
	reason  string
	message string
	// state is the word for the STATUS column.
	state       string
	reconciling bool
	stalled     bool
	// serves: what is to run does, ready or not.
	serves bool
}

// readiness says how a custom resource is doing.
func readiness(v *view, d plan.Decision) summary {
	s := health(v, d)
	o := v.observation
	switch {
	case s.serves && o.Held != nil && !o.Held.Over:
		s.state = fmt.Sprintf("Held (rev %d)", o.Held.Revision)
	case d.State == plan.StatePaused:
		s.state = api.ReasonPaused
	default:
		s.state = s.reason
	}
	return s
}

// health is readiness without the word for it. A failure that lasts is told
// even while it is being tried again, or the two would take turns.
func health(v *view, d plan.Decision) summary {
	o := v.observation
	if d.State == plan.StateAborted {
		return aborted(v)
	}
	if f := v.failure; f != nil && f.Aim == plan.Aim(o) {
		return summary{
			status: metav1.ConditionFalse, reason: f.reason, message: f.message,
			reconciling: !f.stalled, stalled: f.stalled,
		}
	}
	if o.Running != nil && (plan.Changes(o.Running.Step) || waitsForTest(o)) {
		s := working(o.Running.Step, v)
		if o.Running.Queued {
			s.message += "; it waits for its turn, since as many actions run as may at once"
		}
		s.message = cut(s.message + hookMessage(v))
		return s
	}
	switch d.State {
	case plan.StateInSync, plan.StateDrifted, plan.StateDue, plan.StateBusy, plan.StateUnrecorded, plan.StateUnsigned, plan.StateUntested, plan.StateUnready, plan.StateHeld, plan.StateRollbackRequested, plan.StatePostponed, plan.StateStripped:
		if d.Step == plan.StepRollback {
			return working(d.Step, v)
		}
		return serving(v)
	case plan.StatePaused:
		return waiting(v, d)
	case plan.StateConflict:
		return summary{
			status: metav1.ConditionFalse, reason: api.ReasonNameConflict, stalled: true,
			message: fmt.Sprintf("Releases of others have the names that this resource may use (%v): uninstall them, or rename this resource", catalog.ReleaseNames(v.cr.GetName(), v.cr.GetKind())),
		}
	case plan.StateDeleting, plan.StateUninstalling:
		if o.Deleting && o.Orphan {
			return working(plan.StepOrphan, v)
		}
		return working(plan.StepUninstall, v)
	case plan.StateInvalid:
		return summary{status: metav1.ConditionFalse, reason: cmp.Or(v.invalidReason, api.ReasonInvalidValues), message: o.Invalid, stalled: true}
	case plan.StateLocked:
		return summary{status: metav1.ConditionUnknown, reason: api.ReasonLocked, reconciling: true, message: fmt.Sprintf("Revision %d of release %s is %s: somebody else's operation is under way", o.Newest.Number, v.release.Name, o.Newest.Status)}
	default:
		return working(d.Step, v)
	}
}

// serving says that what was asked for runs.
func serving(v *view) summary {
	o := v.observation
	if o.Newest == nil || o.Newest.Status != api.StatusDeployed {
		if v.update != nil {
			return summary{
				status: metav1.ConditionFalse, reason: v.updateReason, stalled: true,
				message: fmt.Sprintf("Revision %d of release %s is %s. %s", o.Newest.Number, v.release.Name, o.Newest.Status, updateMessage(v)),
			}
		}
		return working(plan.StepUpgrade, v)
	}
	if len(v.health.Unready) > 0 {
		s := unreadiness(v)
		s.serves = true
		return s
	}
	text := fmt.Sprintf("Revision %d of release %s is deployed", o.Newest.Number, v.release.Name)
	if o.Held != nil && !o.Held.Over {
		text += fmt.Sprintf(", which is revision %d again and is held", o.Held.Revision)
	}
	return summary{status: metav1.ConditionTrue, reason: api.ReasonDeployed, message: text + assumption(v) + distrust(v), serves: true}
}

// distrust says that nothing from the newest record is applied, empty where that
// is not so.
func distrust(v *view) string {
	if v.untrusted == "" {
		return ""
	}
	return ". Its objects are not corrected until it is upgraded: " + v.untrusted
}

// waiting says what the pause keeps from being done. Where that is nothing, it
// is as if there were none.
func waiting(v *view, d plan.Decision) summary {
	if plan.Changes(d.Pending) || d.Pending == plan.StepAddFinalizer {
		return summary{status: metav1.ConditionFalse, reason: api.ReasonPaused, message: "Paused, and the next step waits: " + string(d.Pending)}
	}
	free := *v
	free.observation.Paused = false
	return health(&free, plan.Next(free.observation))
}

// waitsForTest reports whether a change waits for the tests of what runs to end.
func waitsForTest(o plan.Observation) bool {
	_, waits := waiters[o.Change]
	return waits && o.Running.Step == plan.StepTest && o.Running.Hook != nil
}

// aborted says what a person has aborted, and how it goes on.
func aborted(v *view) summary {
	s := summary{status: metav1.ConditionFalse, reason: api.ReasonAborted, stalled: true}
	if v.observation.Deleting {
		s.message = fmt.Sprintf("The annotation %s keeps the delete hooks of release %s from running, and so the custom resource from being deleted. Remove the annotation, or set %s to \"true\"",
			api.AnnotationAbort, v.release.Name, api.AnnotationUninstallDisableHooks)
		return s
	}
	s.message = fmt.Sprintf("Revision %d of release %s was aborted, as the annotation %s asked. It is not tried again until the spec is edited or the annotation is removed",
		v.observation.Newest.Number, v.release.Name, api.AnnotationAbort)
	return s
}

func working(step plan.Step, v *view) summary {
	s := summary{status: metav1.ConditionUnknown, reconciling: true}
	name := v.release.Name
	switch step {
	case plan.StepUninstall, plan.StepRemoveFinalizer:
		s.status = metav1.ConditionFalse
		s.reason, s.message = api.ReasonUninstalling, fmt.Sprintf("Release %s is being uninstalled", name)
	case plan.StepOrphan:
		s.status = metav1.ConditionFalse
		s.reason, s.message = api.ReasonOrphaning, fmt.Sprintf("Release %s is being let go of", name)
	case plan.StepAdopt:
		s.reason, s.message = api.ReasonAdopting, fmt.Sprintf("Release %s, which nobody managed, is being taken over", name)
	case plan.StepUpgrade:
		s.reason, s.message = api.ReasonUpgrading, fmt.Sprintf("Release %s is being upgraded", name)
	case plan.StepTest:
		s.reason, s.message = api.ReasonUpgrading, fmt.Sprintf("Release %s is being tested", name)
	case plan.StepRollback:
		s.reason, s.message = api.ReasonRollingBack, fmt.Sprintf("Release %s is being brought back to an earlier revision", name)
	case plan.StepUnlock:
		s.reason, s.message = api.ReasonInterrupted, fmt.Sprintf("The last action on release %s was cut short and is tried again", name)
	default:
		s.reason, s.message = api.ReasonInstalling, fmt.Sprintf("Release %s is being installed", name)
	}
	return s
}
