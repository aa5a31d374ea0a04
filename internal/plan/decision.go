package plan

import "time"

// Step is the next thing to do.
type Step string

// The steps. Install, Upgrade, Rollback, Uninstall and Test are Helm's actions.
const (
	// StepWait waits for an event or until After has passed.
	StepWait            Step = "Wait"
	StepAddFinalizer    Step = "AddFinalizer"
	StepRemoveFinalizer Step = "RemoveFinalizer"
	// StepUnlock records that the action of the newest revision was interrupted.
	StepUnlock Step = "Unlock"
	// StepRestore restores the annotations of the newest record, if its content is
	// unchanged.
	StepRestore Step = "Restore"
	// StepSign signs the newest record with the current key, if its content is
	// authenticated.
	StepSign Step = "Sign"
	// StepTidy makes inconsistent records consistent.
	StepTidy      Step = "Tidy"
	StepInstall   Step = "Install"
	StepUpgrade   Step = "Upgrade"
	StepUninstall Step = "Uninstall"
	// StepRollback rolls back to the decision's revision, and holds the release.
	StepRollback Step = "Rollback"
	// StepResume ends a hold: from then on the release follows the spec.
	StepResume Step = "Resume"
	// StepRefuse records that a rollback request is refused.
	StepRefuse Step = "Refuse"
	// StepOrphan removes the finalizer of the custom resource, and leaves the objects as
	// they are.
	StepOrphan Step = "Orphan"
	// StepAdopt adopts a release that no operator created.
	StepAdopt Step = "Adopt"
	// StepRepair applies the drifted objects again from the stored manifest.
	StepRepair Step = "Repair"
	// StepVerify applies every object again from the stored manifest.
	StepVerify Step = "Verify"
	// StepRecord stores in the record which Jobs have finished.
	StepRecord Step = "Record"
	// StepDiagnose finds out why objects are not ready.
	StepDiagnose Step = "Diagnose"
	// StepTest runs the chart's tests.
	StepTest Step = "Test"
	// StepInterrupt ends the running action, which waits for a hook.
	StepInterrupt Step = "Interrupt"
)

// State is the state of a custom resource.
type State string

// The states, in the order of the checks in Next. They appear in logs.
const (
	// StateBusy: an action on the release is running.
	StateBusy State = "Busy"
	// StateDeleted: the custom resource is being deleted, and its release is gone.
	StateDeleted State = "Deleted"
	// StateInUse: the custom resource is being deleted, and others that depend on it
	// still have releases.
	StateInUse State = "InUse"
	// StateDeleting: the custom resource is being deleted, and its release must be
	// uninstalled first.
	StateDeleting State = "Deleting"
	// StatePaused: a user has paused the custom resource.
	StatePaused State = "Paused"
	// StateConflict: the release name belongs to another owner.
	StateConflict State = "Conflict"
	// StateUnguarded: the custom resource lacks the finalizer that delays its deletion
	// until its release is uninstalled.
	StateUnguarded State = "Unguarded"
	// StateStripped: another program has written the newest record and dropped its
	// annotations. The rest may be unchanged.
	StateStripped State = "Stripped"
	// StateLocked: an action is pending that this process does not run.
	StateLocked State = "Locked"
	// StateUntidy: the records are inconsistent.
	StateUntidy State = "Untidy"
	// StateUninstalling: an uninstall has begun and was not finished.
	StateUninstalling State = "Uninstalling"
	// StateRollbackRequested: a user requests an earlier revision, or the end of a
	// hold.
	StateRollbackRequested State = "RollbackRequested"
	// StateAborted: a user has aborted an action, and nothing has changed since.
	StateAborted State = "Aborted"
	// StateDrifted: an object of the release has drifted.
	StateDrifted State = "Drifted"
	// StateUnverified: the expected content of the objects is unknown, or a user
	// requests that they are applied again, while the release cannot follow the spec.
	StateUnverified State = "Unverified"
	// StateInvalid: the spec is invalid.
	StateInvalid State = "Invalid"
	// StateWaiting: the release does not follow the spec yet, because an object that the
	// custom resource depends on is not ready.
	StateWaiting State = "Waiting"
	// StateMoving: the spec requests another namespace for the release. The release is
	// uninstalled, and then installed there.
	StateMoving State = "Moving"
	// StateAbsent: there is no release.
	StateAbsent State = "Absent"
	// StateUnmanaged: another program has created the newest revision.
	StateUnmanaged State = "Unmanaged"
	// StateFailed: the newest revision, or the last attempt, failed.
	StateFailed State = "Failed"
	// StateOutOfSync: the inputs of the release have changed.
	StateOutOfSync State = "OutOfSync"
	// StateDue: every object must be applied again, because a user requests it, the
	// period has passed, or the expected content of the objects is unknown.
	StateDue State = "Due"
	// StateUnrecorded: a Job with ttlSecondsAfterFinished has finished, which the
	// record does not state yet.
	StateUnrecorded State = "Unrecorded"
	// StateUnsigned: the newest record lacks a signature with the current key.
	StateUnsigned State = "Unsigned"
	// StateUntested: a user requests the chart's tests.
	StateUntested State = "Untested"
	// StateUnready: objects are not ready, for an unknown cause.
	StateUnready State = "Unready"
	// StateHeld: an earlier revision runs and is held.
	StateHeld State = "Held"
	// StatePostponed: the upgrade to a new chart waits for the rollout.
	StatePostponed State = "Postponed"
	// StateInSync: the release follows the spec.
	StateInSync State = "InSync"
)

// Decision is a state and the next step.
type Decision struct {
	State State
	Step  Step
	// Revision is the revision to roll back to, if the step is StepRollback.
	Revision int
	// After bounds a wait; 0 means until the next event.
	After time.Duration
	// Throttled reports that Observation.Earliest is the only cause of the wait.
	Throttled bool
	// Change is the change that interrupts the running action.
	Change Change
	// Pending is what the decision would be without the pause.
	Pending Pending
}

// Pending is the state and the step that a pause prevents.
type Pending struct {
	State State
	Step  Step
}
