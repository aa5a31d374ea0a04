package status

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/inventory"
	"github.com/chartwright/chartwright/internal/plan"
)

// summary is the content of the condition Ready, and whether Reconciling and Stalled
// are True.
type summary struct {
	status  metav1.ConditionStatus
	reason  string
	message string
	// state is the text in the STATUS column.
	state       string
	reconciling bool
	stalled     bool
	// serves reports that the desired revision is deployed, ready or not.
	serves bool
}

// readiness returns the summary of a custom resource.
func readiness(v *Snapshot, d plan.Decision) summary {
	s := health(v, d)
	o := v.Observation
	switch {
	case s.serves && o.Holding():
		s.state = fmt.Sprintf("Held (rev %d)", o.Held.Revision)
	case d.State == plan.StatePaused:
		s.state = api.ReasonPaused
	default:
		s.state = s.reason
	}
	return s
}

// health returns the summary without the state. It reports a failure also during its
// retries, or Ready would alternate between two reasons.
func health(v *Snapshot, d plan.Decision) summary {
	o := v.Observation
	if d.State == plan.StateAborted {
		return aborted(v)
	}
	switch d.State {
	case plan.StateWaiting:
		// An earlier failure may be the reason why the dependency was changed.
		return summary{status: metav1.ConditionFalse, reason: api.ReasonDependencyNotReady, message: Cut(o.Dependency.Message), reconciling: true}
	case plan.StateInUse:
		// Only dependents that are being deleted end the wait without a user.
		ends := o.Dependents.After > 0
		return summary{status: metav1.ConditionFalse, reason: api.ReasonInUse, message: Cut(o.Dependents.Message), reconciling: ends, stalled: !ends}
	}
	if f := v.failing(); f != nil {
		return failed(f, d)
	}
	if o.Running != nil && (plan.Changes(o.Running.Step) || waitsForTest(o)) {
		s := working(o.Running.Step, v)
		if o.Running.Queued {
			s.message += "; queued, because the maximum number of actions is running"
		}
		s.message = Cut(s.message + hookMessage(v))
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
			message: fmt.Sprintf("The release names that this custom resource may use %v are taken by releases of other owners: uninstall those, or create the custom resource under another name", catalog.ReleaseNames(v.CR.GetName(), v.CR.GetKind())),
		}
	case plan.StateDeleting, plan.StateUninstalling:
		if o.Deleting && o.Orphan {
			return working(plan.StepOrphan, v)
		}
		return working(plan.StepUninstall, v)
	case plan.StateInvalid:
		if v.Unread {
			return serving(v)
		}
		return summary{status: metav1.ConditionFalse, reason: o.Invalid.Reason, message: o.Invalid.Message, stalled: true}
	case plan.StateLocked:
		return summary{status: metav1.ConditionUnknown, reason: api.ReasonLocked, reconciling: true, message: fmt.Sprintf("Revision %d of release %s is %s: another program, such as helm, is changing the release", o.Newest.Number, v.Release.Name, o.Newest.Status)}
	default:
		return preparing(v, d)
	}
}

// failed returns the summary of a failure, with the time of the next attempt unless a user must
// act first.
func failed(f *Failure, d plan.Decision) summary {
	s := summary{
		status: metav1.ConditionFalse, reason: f.Reason, message: f.Message,
		reconciling: !f.Stalled, stalled: f.Stalled,
	}
	if !f.Stalled && !f.At.IsZero() && d.State != plan.StatePaused {
		next := ". Next attempt at " + f.Next().UTC().Format(time.RFC3339)
		s.message = api.Truncate(strings.TrimSuffix(f.Message, "."), maxCondition-len(next)) + next
	}
	return s
}

// preparing returns the summary before an action.
func preparing(v *Snapshot, d plan.Decision) summary {
	s := working(d.Step, v)
	if d.Step == plan.StepWait && d.After > 0 {
		s.message = fmt.Sprintf("The next action on release %s begins at %s", v.Release.Name, v.Observation.Now.Add(d.After).UTC().Format(time.RFC3339))
		if d.Throttled {
			s.message += ", because many were requested"
		}
	}
	return s
}

// ReadAgain is the time between two attempts to read the inputs.
const ReadAgain = 30 * time.Second

// unread returns the summary of a release that may not follow the spec, because the inputs
// cannot be read.
func unread(v *Snapshot) summary {
	return summary{
		status: metav1.ConditionUnknown, reason: api.ReasonInputsUnread, reconciling: true,
		message: fmt.Sprintf("It is unknown whether release %s follows the spec: %s. The operator tries again every %s",
			v.Release.Name, api.Truncate(strings.TrimSuffix(v.Observation.Invalid.Message, "."), MaxNote/2), ReadAgain),
	}
}

// serving returns the summary of a deployed release.
func serving(v *Snapshot) summary {
	o := v.Observation
	if o.Newest == nil || o.Newest.Status != api.StatusDeployed {
		if v.Unread {
			return unread(v)
		}
		if v.Update != nil {
			return summary{
				status: metav1.ConditionFalse, reason: v.UpdateReason, stalled: true,
				message: fmt.Sprintf("Revision %d of release %s is %s. %s", o.Newest.Number, v.Release.Name, o.Newest.Status, updateMessage(v)),
			}
		}
		return working(plan.StepUpgrade, v)
	}
	if f := v.uncorrected(); f != nil && f.Foreign {
		return summary{status: metav1.ConditionFalse, reason: api.ReasonObjectConflict, message: f.Message, stalled: true, serves: true}
	}
	if len(v.Health.Unready) > 0 {
		s := unreadiness(v)
		s.serves = true
		return s
	}
	if v.Unread && !o.Holding() {
		return unread(v)
	}
	text := fmt.Sprintf("Revision %d of release %s is deployed", o.Newest.Number, v.Release.Name)
	if o.Holding() {
		text += fmt.Sprintf(", a rollback to revision %d, and held", o.Held.Revision)
	}
	return summary{status: metav1.ConditionTrue, reason: api.ReasonDeployed, message: text + assumption(v) + distrust(v), serves: true}
}

// distrust returns why nothing from the newest record is applied, empty if the record
// is trusted.
func distrust(v *Snapshot) string {
	if v.Untrusted == "" {
		return ""
	}
	return ". Drift is not corrected until the next upgrade: " + v.Untrusted
}

// waiting returns the summary of a paused custom resource. If no change is pending, it
// is the same as without the pause.
func waiting(v *Snapshot, d plan.Decision) summary {
	if step := d.Pending.Step; plan.Changes(step) || step == plan.StepAddFinalizer {
		return summary{status: metav1.ConditionFalse, reason: api.ReasonPaused, message: "Paused; pending step: " + string(step)}
	}
	return health(v, plan.Decision{State: d.Pending.State, Step: d.Pending.Step})
}

// waitsForTest reports whether a change waits for the end of the running tests.
func waitsForTest(o plan.Observation) bool {
	_, waits := waiters[o.Change]
	return waits && o.Running.Step == plan.StepTest && o.Running.Hook != nil
}

// aborted returns the summary of an aborted action, with what the user can do next.
func aborted(v *Snapshot) summary {
	s := summary{status: metav1.ConditionFalse, reason: api.ReasonAborted, stalled: true}
	if v.Observation.Deleting {
		s.message = fmt.Sprintf("The annotation %s stops the delete hooks of release %s, so the custom resource cannot be deleted. Remove the annotation, or set %s to \"true\" to skip the hooks",
			api.AnnotationAbort, v.Release.Name, api.AnnotationUninstallDisableHooks)
		return s
	}
	s.message = fmt.Sprintf("Revision %d of release %s was aborted by the annotation %s. To retry, edit the spec or remove the annotation",
		v.Observation.Newest.Number, v.Release.Name, api.AnnotationAbort)
	return s
}

// progressing holds the status, reason and message of Ready for each step that takes
// time. Other steps prepare an install or an upgrade.
var progressing = map[plan.Step]struct {
	status          metav1.ConditionStatus
	reason, message string
}{
	plan.StepUninstall:       {metav1.ConditionFalse, api.ReasonUninstalling, "Release %s is being uninstalled"},
	plan.StepRemoveFinalizer: {metav1.ConditionFalse, api.ReasonUninstalling, "Release %s is being uninstalled"},
	plan.StepOrphan:          {metav1.ConditionFalse, api.ReasonOrphaning, "Release %s is being orphaned: its objects stay"},
	plan.StepAdopt:           {metav1.ConditionUnknown, api.ReasonAdopting, "Release %s is being adopted"},
	plan.StepUpgrade:         {metav1.ConditionUnknown, api.ReasonUpgrading, "Release %s is being upgraded"},
	plan.StepTest:            {metav1.ConditionUnknown, api.ReasonUpgrading, "Release %s is being tested"},
	plan.StepRollback:        {metav1.ConditionUnknown, api.ReasonRollingBack, "Release %s is being rolled back to an earlier revision"},
	plan.StepUnlock:          {metav1.ConditionUnknown, api.ReasonInterrupted, "The last action on release %s was interrupted and is retried"},
	plan.StepInstall:         {metav1.ConditionUnknown, api.ReasonInstalling, "Release %s is being installed"},
}

// working returns the summary during a step.
func working(step plan.Step, v *Snapshot) summary {
	p, ok := progressing[step]
	if !ok {
		p = progressing[plan.StepInstall]
		if _, deployed := Deployed(v.History); deployed {
			p = progressing[plan.StepUpgrade]
		}
	}
	return summary{status: p.status, reason: p.reason, message: fmt.Sprintf(p.message, v.Release.Name), reconciling: true}
}

// unreadiness returns the summary of a release with unready objects.
func unreadiness(v *Snapshot) summary {
	first := v.Health.Unready[0]
	s := summary{status: metav1.ConditionFalse, reason: api.ReasonProgressing, reconciling: true}
	switch {
	case first.Reason == inventory.ReasonForeign:
		s.reason, s.reconciling, s.stalled = api.ReasonObjectConflict, false, true
	case first.Failed:
		s.reason, s.reconciling, s.stalled = api.ReasonObjectFailed, false, true
	case v.Overdue:
		s.reason, s.reconciling, s.stalled = api.ReasonProgressDeadlineExceeded, false, true
	}
	text := fmt.Sprintf("%d of %d objects are ready. %s", v.Health.Total-len(v.Health.Unready), v.Health.Total, firstOf(v.Health.Unready))
	if v.Diagnosis != "" {
		text += ". " + v.Diagnosis
	}
	s.message = Cut(v.Redact(text))
	return s
}

// assumption names the first object that counts as ready without a controller's
// report, empty without such an object.
func assumption(v *Snapshot) string {
	if len(v.Health.Assumed) == 0 {
		return ""
	}
	return Cut(v.Redact(". " + firstOf(v.Health.Assumed)))
}

// firstOf describes the first of some objects, and counts the others.
func firstOf(objects []inventory.ObjectHealth) string {
	text := fmt.Sprintf("%s: %s", objects[0].Key, strings.TrimSuffix(objects[0].Message, "."))
	if more := len(objects) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}

// StuckHook describes why a hook does not run.
func StuckHook(hook *plan.Hook) string {
	if hook.State == api.HookCrashing {
		return fmt.Sprintf("Hook %s keeps failing: %s", hook.Name, hook.Why)
	}
	return fmt.Sprintf("Hook %s cannot start: %s", hook.Name, hook.Why)
}

// hookMessage describes the hook that the running action waits for, and the change that
// waits for the action. It is empty if the action waits for no hook.
func hookMessage(v *Snapshot) string {
	running := v.Observation.Running
	if running == nil || running.Hook == nil || running.Hook.State == "" {
		return ""
	}
	hook := running.Hook
	text := ". Waiting for hook " + hook.Name
	switch {
	case hook.State.Idle():
		text = ". " + StuckHook(hook)
	case hook.Why != "":
		text += ": " + hook.Why
	case hook.State == api.HookRunning:
		text += ", which is running"
	}
	text = v.Redact(text)
	what, waits := waiters[v.Observation.Change]
	abort := AbortValue(v, running.Step)
	if !waits || hook.State.Idle() || abort == "" {
		return text
	}
	return fmt.Sprintf("%s. %s waits until the hook ends. To end the hook now, even if it is working, set the annotation %s to %q", text, what, api.AnnotationAbort, abort)
}

// waiters describes the changes that wait for a hook.
var waiters = map[plan.Change]string{
	plan.ChangeEdit:          "The edit of the spec",
	plan.ChangeDeletion:      "The deletion",
	plan.ChangeRollback:      "The rollback request",
	plan.ChangeHooksDisabled: "The annotation that disables hooks",
}

// AbortValue returns the value of the annotation that aborts a running action.
func AbortValue(v *Snapshot, step plan.Step) string {
	switch {
	case step == plan.StepUninstall:
		return api.AbortUninstall
	case step == plan.StepTest:
		return api.AbortTest
	case v.Observation.Newest == nil || !api.Pending(v.Observation.Newest.Status):
		return ""
	default:
		return strconv.Itoa(v.Observation.Newest.Number)
	}
}

// updateMessage returns the message of the condition UpdateAvailable.
func updateMessage(v *Snapshot) string {
	to := v.Update
	if to == nil {
		return ""
	}
	from := "a chart of the same version with other files or overrideValues"
	if r := v.History[0]; r.ChartVersion != to.ChartVersion {
		from = r.ChartVersion
	}
	what := fmt.Sprintf("Chart %s will replace %s", to.Chart, from)
	place := fmt.Sprintf("position %d of %d in the rollout", to.Place, to.Of)
	switch v.UpdateReason {
	case api.ReasonRolloutStopped:
		return fmt.Sprintf("%s, at %s. The rollout has stopped because upgrades failed, in this namespace or in several: fix, hold, pause or delete the failed custom resources to continue", what, place)
	case api.ReasonRolloutPaused:
		return fmt.Sprintf("%s, at %s, when the rollout is resumed", what, place)
	case api.ReasonPaused:
		return what + " when the pause ends"
	case api.ReasonHeld:
		return what + " when the hold ends"
	case api.ReasonApprovalRequired:
		return what + " when its plan is approved; the condition Ready has the plan"
	case api.ReasonDependencyNotReady:
		return what + " when the objects that the custom resource depends on are ready; the condition Ready names the first that is not"
	case api.ReasonDowngradeRefused:
		return fmt.Sprintf("The operator has chart %s, which is older than %s, and rollout.allowDowngrade is false: run an operator that has the newer chart, or allow it", to.Chart, from)
	default:
		return fmt.Sprintf("%s, at %s; an edit of the spec is applied at once", what, place)
	}
}
