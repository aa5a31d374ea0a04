package decide

import "time"

// Step is the one thing to do next.
type Step string

// The steps. Install, Upgrade and Uninstall are Helm's actions; the rest are
// one request each.
const (
	// StepWait is to do nothing until something happens or After has passed.
	StepWait            Step = "Wait"
	StepAddFinalizer    Step = "AddFinalizer"
	StepRemoveFinalizer Step = "RemoveFinalizer"
	// StepUnlock is to record that the newest revision's action was cut short.
	StepUnlock    Step = "Unlock"
	StepInstall   Step = "Install"
	StepUpgrade   Step = "Upgrade"
	StepUninstall Step = "Uninstall"
	// StepAdopt is to take over a release that no operator made.
	StepAdopt Step = "Adopt"
	// StepRepair is to apply the damaged objects again from the stored
	// manifest.
	StepRepair Step = "Repair"
	// StepVerify is to apply every object again from the stored manifest.
	StepVerify Step = "Verify"
)

// State is where a custom resource stands.
type State string

// The states, in the order in which they are looked for.
const (
	// StateBusy: an action on the release is under way.
	StateBusy State = "Busy"
	// StateDeleted: the custom resource goes, and its release is gone.
	StateDeleted State = "Deleted"
	// StateDeleting: the custom resource goes, its release must go first.
	StateDeleting State = "Deleting"
	// StateConflict: the release's name is taken.
	StateConflict State = "Conflict"
	// StateInvalid: the spec cannot be made into values.
	StateInvalid State = "Invalid"
	// StateUnguarded: nothing keeps the custom resource until its release is
	// uninstalled.
	StateUnguarded State = "Unguarded"
	// StateLocked: an action has begun and this process does not run it.
	StateLocked State = "Locked"
	// StateUninstalling: an uninstall has begun and was not finished.
	StateUninstalling State = "Uninstalling"
	// StateUnmanaged: a release is there that no operator made.
	StateUnmanaged State = "Unmanaged"
	// StateAbsent: there is no release.
	StateAbsent State = "Absent"
	// StateDrifted: an object of the release is damaged.
	StateDrifted State = "Drifted"
	// StateFailed: the newest revision, or the last try, failed.
	StateFailed State = "Failed"
	// StateOutOfSync: the release was rendered from something else.
	StateOutOfSync State = "OutOfSync"
	// StateDue: every object is to be applied again, because the period says so
	// or because it is not known what they should be like.
	StateDue State = "Due"
	// StateInSync: the release is what the spec asks for.
	StateInSync State = "InSync"
)

// Decision is a state and the next step.
type Decision struct {
	State State
	Step  Step
	// After bounds a wait; 0 means until something happens.
	After time.Duration
}
