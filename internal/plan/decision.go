package plan

import "time"

// Step is the one thing to do next.
type Step string

// The steps. Install, Upgrade, Rollback, Uninstall and Test are Helm's actions.
const (
	// StepWait is to do nothing until something happens or After has passed.
	StepWait            Step = "Wait"
	StepAddFinalizer    Step = "AddFinalizer"
	StepRemoveFinalizer Step = "RemoveFinalizer"
	// StepUnlock is to record that the newest revision's action was cut short.
	StepUnlock Step = "Unlock"
	// StepRestore is to write the annotations of the newest record back, if what
	// it stores is unchanged.
	StepRestore Step = "Restore"
	// StepSign is to sign the newest record with the current key, if what it stores
	// is proven.
	StepSign Step = "Sign"
	// StepTidy is to make inconsistent records agree.
	StepTidy      Step = "Tidy"
	StepInstall   Step = "Install"
	StepUpgrade   Step = "Upgrade"
	StepUninstall Step = "Uninstall"
	// StepRollback is to roll back to the decision's revision, and to hold it.
	StepRollback Step = "Rollback"
	// StepResume is to end a hold: from then on the release follows the spec.
	StepResume Step = "Resume"
	// StepRefuse is to record that a rollback request cannot be met.
	StepRefuse Step = "Refuse"
	// StepOrphan is to leave the objects as they are and to release the custom
	// resource.
	StepOrphan Step = "Orphan"
	// StepAdopt is to take over a release that no operator made.
	StepAdopt Step = "Adopt"
	// StepRepair is to apply the drifted objects again from the stored manifest.
	StepRepair Step = "Repair"
	// StepVerify is to apply every object again from the stored manifest.
	StepVerify Step = "Verify"
	// StepRecord notes on the record which Jobs have finished.
	StepRecord Step = "Record"
	// StepDiagnose is to find out why objects are not ready.
	StepDiagnose Step = "Diagnose"
	// StepTest is to run the chart's tests.
	StepTest Step = "Test"
	// StepInterrupt is to end the running action, which waits for a hook.
	StepInterrupt Step = "Interrupt"
)

// State is what Next found a custom resource in.
type State string

// The states, in the order in which Next checks for them. They appear in logs.
const (
	// StateBusy: an action on the release is under way.
	StateBusy State = "Busy"
	// StateDeleted: the custom resource is being deleted, and its release is gone.
	StateDeleted State = "Deleted"
	// StateDeleting: the custom resource is being deleted, its release first.
	StateDeleting State = "Deleting"
	// StatePaused: a user has asked for nothing to be changed.
	StatePaused State = "Paused"
	// StateConflict: the release's name is taken.
	StateConflict State = "Conflict"
	// StateUnguarded: the finalizer is missing that keeps the custom resource until
	// its release is uninstalled.
	StateUnguarded State = "Unguarded"
	// StateStripped: another program has written the newest record, which may be
	// unchanged but for its annotations.
	StateStripped State = "Stripped"
	// StateLocked: an action has begun and this process does not run it.
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
	// StateUnverified: nothing is known of what the objects should be like, or a
	// user asks for them to be applied again, and the spec cannot be followed.
	StateUnverified State = "Unverified"
	// StateInvalid: the spec cannot be made into values.
	StateInvalid State = "Invalid"
	// StateAbsent: there is no release.
	StateAbsent State = "Absent"
	// StateUnmanaged: another program has made the newest revision.
	StateUnmanaged State = "Unmanaged"
	// StateFailed: the newest revision, or the last try, failed.
	StateFailed State = "Failed"
	// StateOutOfSync: the release was rendered from something else.
	StateOutOfSync State = "OutOfSync"
	// StateDue: every object is to be applied again, because a user or the period
	// asks for it or because it is not known what they should be like.
	StateDue State = "Due"
	// StateUnrecorded: a Job with ttlSecondsAfterFinished has finished, and the
	// record does not say so.
	StateUnrecorded State = "Unrecorded"
	// StateUnsigned: the current key has not signed the newest record.
	StateUnsigned State = "Unsigned"
	// StateUntested: a user asks for the chart's tests.
	StateUntested State = "Untested"
	// StateUnready: objects are not ready, and the cause is not known.
	StateUnready State = "Unready"
	// StateHeld: an earlier revision runs, as requested.
	StateHeld State = "Held"
	// StatePostponed: the rollout of a new chart has not reached this one.
	StatePostponed State = "Postponed"
	// StateInSync: the release is what the spec asks for.
	StateInSync State = "InSync"
)

// Decision is a state and the next step.
type Decision struct {
	State State
	Step  Step
	// Revision is the one to roll back to, where the step is StepRollback.
	Revision int
	// After bounds a wait; 0 means until something happens.
	After time.Duration
	// Throttled reports that the wait is for Observation.Earliest alone.
	Throttled bool
	// Change is why to interrupt the running action.
	Change Change
	// Pending is what the decision would be without the pause.
	Pending Pending
}

// Pending is the state and the step that a pause holds up.
type Pending struct {
	State State
	Step  Step
}
