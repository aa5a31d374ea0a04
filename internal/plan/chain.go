package plan

import (
	"time"

	"github.com/chartwright/chartwright/internal/api"
)

// check recognizes one state.
type check struct {
	name  string
	state State
	// applies reports whether the custom resource is in the state, provided that no
	// earlier check applies.
	applies func(Observation) bool
	// decide returns the step. The state of the decision is that of the check unless
	// decide sets another.
	decide func(Observation) Decision
}

// chain lists the checks in order of precedence. The last one always applies.
var chain = []check{
	// One action on a release at a time.
	{"busy", StateBusy, isBusy, interrupt},

	// A deletion comes before everything else. Only a pause that includes deletions
	// prevents it. The release is uninstalled before the finalizer is removed.
	{"deletionPaused", StatePaused, deletionPaused, pauseDeletion},
	{"deleted", StateDeleted, isDeleted, removeFinalizer},
	{"uninstallAborted", StateAborted, uninstallAborted, wait},
	// Custom resources that depend on this one are uninstalled first.
	{"inUse", StateInUse, isInUse, waitForDependents},
	{"deleting", StateDeleting, isDeleting, uninstall},

	// While a user inspects or repairs objects, the operator changes nothing.
	{"paused", StatePaused, func(o Observation) bool { return o.Paused }, wait},
	// A release of another owner is never changed.
	{"conflict", StateConflict, func(o Observation) bool { return o.Conflict }, pollConflict},
	// The finalizer comes before everything that must be cleaned up.
	{"unguarded", StateUnguarded, finalizerMissing, do(StepAddFinalizer)},
	// Without the service account, actions would have the permissions of the operator.
	{"accountUnknown", StateInvalid, func(o Observation) bool { return o.AccountUnknown && o.Invalid != nil }, wait},

	// Records that another program wrote, or that an earlier process left unfinished.
	// "helm test" drops a record's annotations and changes nothing else.
	{"stripped", StateStripped, recordStripped, try(StepRestore)},
	{"locked", StateLocked, isLocked, afterForeign(StepUnlock)},
	{"untidy", StateUntidy, func(o Observation) bool { return o.Inconsistent && o.stored() }, try(StepTidy)},
	{"uninstalling", StateUninstalling, isUninstalling, afterForeign(StepUninstall)},

	// Requests of users come before the spec, because the spec may be the problem.
	{"rollbackRequested", StateRollbackRequested, rollbackRequested, rollback},
	{"aborted", StateAborted, isAborted, wait},
	// A held release is rolled back again if it has changed. An expired hold ends.
	{"heldBack", StateHeld, holdBroken, restoreHold},

	// Drift is corrected even if the release cannot follow the spec.
	{"drifted", StateDrifted, isDrifted, try(StepRepair)},
	{"unverified", StateUnverified, isUnverified, try(StepVerify)},
	{"invalid", StateInvalid, specInvalid, waitForSpec},

	// The release follows the spec, as soon as its dependencies are ready.
	{"waiting", StateWaiting, isWaiting, waitForDependency},
	{"moving", StateMoving, isMoving, try(StepUninstall)},
	{"absent", StateAbsent, isAbsent, try(StepInstall)},
	{"unmanaged", StateUnmanaged, isUnmanaged, takeOver},
	// Retry with backoff, immediately after an edit, or roll back.
	{"failed", StateFailed, func(o Observation) bool { return failureOf(o) != notFailed }, remediate},
	{"outOfSync", StateOutOfSync, isOutOfSync, try(StepUpgrade)},

	// The release is in sync. The remaining steps create no revision.
	{"due", StateDue, isDue, try(StepVerify)},
	// A finished Job must not run again after a restart.
	{"unrecorded", StateUnrecorded, func(o Observation) bool { return o.Unrecorded && o.runs() }, try(StepRecord)},
	{"unsigned", StateUnsigned, func(o Observation) bool { return o.Unsigned && o.runs() }, try(StepSign)},
	{"untested", StateUntested, func(o Observation) bool { return o.TestRequested && !o.untrusted() }, try(StepTest)},
	{"unready", StateUnready, func(o Observation) bool { return o.NeedsDiagnosis }, do(StepDiagnose)},
	{"held", StateHeld, Observation.Holding, untilPeriod},
	{"postponed", StatePostponed, func(o Observation) bool { return o.Postponed }, untilPeriod},
	{"inSync", StateInSync, func(Observation) bool { return true }, untilPeriod},
}

// Next returns the state of a custom resource and the next step. If the custom
// resource is paused, the decision also names the pending step.
func Next(o Observation) Decision {
	d := first(o)
	if d.State != StatePaused || d.Pending != (Pending{}) {
		return d
	}
	o.Paused, o.Earliest = false, time.Time{}
	resumed := first(o)
	d.Pending = Pending{State: resumed.State, Step: resumed.Step}
	return d
}

// first returns the decision of the first check that applies.
func first(o Observation) Decision {
	for _, check := range chain {
		if check.applies(o) {
			d := check.decide(o)
			if d.State == "" {
				d.State = check.state
			}
			return d
		}
	}
	panic("plan: no check applied")
}

// do decides on a step that is not retried with backoff.
func do(step Step) func(Observation) Decision {
	return func(Observation) Decision { return Decision{Step: step} }
}

// try decides on a step, or on a wait while its backoff lasts.
func try(step Step) func(Observation) Decision {
	return func(o Observation) Decision { return retry(o, Decision{Step: step}) }
}

func wait(Observation) Decision { return Decision{Step: StepWait} }

// untilPeriod waits until the period has passed.
func untilPeriod(o Observation) Decision {
	d := Decision{Step: StepWait}
	if o.Period > 0 {
		d.After = o.Applied.Add(o.Period).Sub(o.Now)
	}
	return d
}

func isBusy(o Observation) bool { return o.Running != nil }

// interrupt ends a running action only if it waits for a hook that makes no progress
// and a change needs another action.
func interrupt(o Observation) Decision {
	if hook := o.Running.Hook; hook != nil && Interrupts(o.Change, hook.State) && o.follows(o.Change) {
		return Decision{Step: StepInterrupt, Change: o.Change}
	}
	return Decision{Step: StepWait}
}

// Interrupts reports whether a change ends an action that waits for a hook in
// this state. A hook whose container runs, or is about to run, may be a migration or
// a backup: only an abort ends it.
func Interrupts(change Change, hook api.HookState) bool {
	switch change {
	case ChangeAbort:
		return true
	case ChangeDeletion, ChangeHooksDisabled, ChangeRollback, ChangeEdit:
		return hook.Idle()
	default:
		return false
	}
}

// follows reports whether a change would lead to an action if none were running.
func (o Observation) follows(change Change) bool {
	switch change {
	case ChangeAbort:
		return true
	case ChangeDeletion:
		return !o.PausedDeletion
	case ChangeEdit:
		return !o.Paused && o.Invalid == nil && o.Dependency == nil
	default:
		return !o.Paused
	}
}

func deletionPaused(o Observation) bool { return o.Deleting && o.guarded() && o.PausedDeletion }

// pauseDeletion observes again, because the pause ends when the namespace is deleted.
func pauseDeletion(Observation) Decision {
	return Decision{Step: StepWait, After: maxBackoff, Pending: Pending{State: StateDeleting, Step: StepUninstall}}
}

func isDeleted(o Observation) bool {
	switch {
	case !o.Deleting:
		return false
	case !o.guarded():
		return true
	default:
		left := o.Newest != nil && (o.Newest.Owned || o.Inherited)
		return !left && !o.Orphans && (o.Newest != nil || !o.Unsearched || o.Conflict)
	}
}

// removeFinalizer does nothing if a user has removed the finalizer already.
func removeFinalizer(o Observation) Decision {
	if !o.guarded() {
		return Decision{Step: StepWait}
	}
	return Decision{Step: StepRemoveFinalizer}
}

func uninstallAborted(o Observation) bool { return o.Deleting && !o.Orphan && o.AbortUninstall }

// isInUse ignores an uninstall that has begun. Orphaning deletes nothing that others use.
func isInUse(o Observation) bool {
	return o.Deleting && !o.Orphan && o.Dependents != nil && (o.Newest == nil || o.Newest.Status != api.StatusUninstalling)
}

func waitForDependents(o Observation) Decision {
	return Decision{Step: StepWait, After: o.Dependents.After}
}

func isDeleting(o Observation) bool { return o.Deleting }

func uninstall(o Observation) Decision {
	if o.Orphan {
		return retry(o, Decision{Step: StepOrphan})
	}
	if o.Newest != nil && o.Newest.Status == api.StatusUninstalling {
		return afterForeign(StepUninstall)(o)
	}
	return retry(o, Decision{Step: StepUninstall})
}

func pollConflict(Observation) Decision { return Decision{Step: StepWait, After: maxBackoff} }

// finalizerMissing ignores custom resources that could not be installed anyway.
func finalizerMissing(o Observation) bool {
	return (!o.Finalizer || o.Former) && (o.Invalid == nil || o.Newest != nil)
}

// recordStripped precedes every check that depends on the author of the newest
// revision.
func recordStripped(o Observation) bool { return o.stored() && o.Newest.Stripped }

func isLocked(o Observation) bool { return o.Newest != nil && api.Pending(o.Newest.Status) }

func isUninstalling(o Observation) bool {
	return o.Newest != nil && o.Newest.Owned && o.Newest.Status == api.StatusUninstalling
}

// afterForeign decides on a step after an operation of another program, such as
// helm upgrade, has ended or timed out.
func afterForeign(step Step) func(Observation) Decision {
	return func(o Observation) Decision {
		left := o.Newest.Began.Add(o.Newest.Timeout).Sub(o.Now)
		if !o.Newest.WrittenByUs && left > 0 {
			return Decision{Step: StepWait, After: left}
		}
		return retry(o, Decision{Step: step})
	}
}

// isAborted reports whether a user has aborted the newest revision. It depends only
// on the record and the annotation, so that an abort survives a restart. An edit or
// a rollback creates another revision, which ends the abort.
func isAborted(o Observation) bool {
	if o.Abort == 0 || !o.stored() || o.Newest.Number != o.Abort {
		return false
	}
	failed := o.Newest.WrittenByUs && o.Newest.Status == api.StatusFailed
	return failed && (o.Holding() || o.Newest.Digest == o.Desired)
}

// isDrifted ignores drift that the next upgrade corrects. If the correction has to
// wait, it does not delay an upgrade.
func isDrifted(o Observation) bool {
	if !o.Drifted || !o.runs() {
		return false
	}
	if o.Newest.Digest == o.Desired || o.staying() {
		return true
	}
	return o.stuck() && try(StepRepair)(o).Step != StepWait
}

// isUnverified applies only if the release cannot follow the spec. isDue covers the
// other cases. A request stays open while the action that answers it waits for an approval.
func isUnverified(o Observation) bool {
	return (o.Unverified || o.VerifyRequested && !o.waits()) && o.runs() && o.stuck() && try(StepVerify)(o).Step != StepWait
}

func specInvalid(o Observation) bool { return o.Invalid != nil && !o.Holding() }

// waitForSpec waits for an edit, or for a dependency without which the values are unknown.
func waitForSpec(o Observation) Decision {
	if o.Invalid.Waits && o.Dependency != nil {
		d := waitForDependency(o)
		d.State = StateWaiting
		return d
	}
	return wait(o)
}

// isWaiting reports whether the release would be changed to follow the spec. A
// rollback after failures does not wait.
func isWaiting(o Observation) bool {
	switch {
	case o.Dependency == nil || o.staying():
		return false
	case isAbsent(o), isMoving(o), isUnmanaged(o):
		return true
	default:
		at := failureOf(o)
		return at != notFailed && !rollsBack(o, at) || at == notFailed && isOutOfSync(o)
	}
}

func waitForDependency(o Observation) Decision {
	return Decision{Step: StepWait, After: o.Dependency.After}
}

// isMoving reports whether the release must be uninstalled in its namespace, because the
// spec requests another one. An uninstall that has begun is finished in any case.
func isMoving(o Observation) bool {
	return o.MoveTo != "" && o.stored() && !o.Deleting && o.Invalid == nil && !o.Holding()
}

func isAbsent(o Observation) bool {
	return o.Newest == nil || o.Newest.Status == api.StatusUninstalled
}

func isUnmanaged(o Observation) bool {
	if isAbsent(o) {
		return false
	}
	return o.Adoptable || !o.Newest.WrittenByUs || o.Newest.Untrusted && !o.staying()
}

// takeOver adopts a release that no operator created, and upgrades a release that
// another program has changed.
func takeOver(o Observation) Decision {
	if o.Adoptable {
		return retry(o, Decision{Step: StepAdopt})
	}
	return retry(o, Decision{Step: StepUpgrade})
}

func isOutOfSync(o Observation) bool {
	return !o.staying() && (o.Newest.Digest != o.Desired || o.Newest.Status != api.StatusDeployed)
}

func isDue(o Observation) bool {
	passed := o.Period > 0 && !o.Now.Before(o.Applied.Add(o.Period))
	return (passed || o.Unverified || o.VerifyRequested) && !o.untrusted()
}
