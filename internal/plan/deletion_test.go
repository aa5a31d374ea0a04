package plan

import (
	"testing"
	"time"

	"github.com/chartwright/chartwright/internal/api"
)

func orphan(o *Observation) { o.Orphan = true }

func orphans(o *Observation) { o.Orphans = true }

func unsearched(o *Observation) { o.Unsearched = true }

func inherited(o *Observation) {
	o.Adoptable, o.Inherited, o.Newest.Owned, o.Newest.WrittenByUs = true, true, false, false
}

func inUse(o *Observation) { o.Dependents = &Obstacle{Message: "App shop depends on it"} }

func deletionIsPaused(o *Observation) { o.Paused, o.PausedDeletion = true, true }

func TestChain_DeletionPaused(t *testing.T) {
	deployed := newest(1, api.StatusDeployed, desired)
	keep := &Decision{State: StatePaused, Step: StepWait, After: maxBackoff, Pending: Pending{StateDeleting, StepUninstall}}
	runCheck(t, "deletionPaused", []expect{
		{"not deleted", guarded(deletionIsPaused, deployed), nil},
		{"pause without deletions", guarded(beingDeleted, isPaused, deployed), nil},
		{"not paused", guarded(beingDeleted, deployed), nil},
		{"deletion paused", guarded(beingDeleted, deletionIsPaused, deployed), keep},
		{"deletion paused, no release", guarded(beingDeleted, deletionIsPaused), keep},
		{"finalizer removed by a user", guarded(beingDeleted, deletionIsPaused, noFinalizer, deployed), nil},
		{"deletion paused, finalizer of the operator-sdk", guarded(beingDeleted, deletionIsPaused, noFinalizer, formerFinalizer, deployed), keep},
	})
}

func TestChain_Deleted(t *testing.T) {
	removeFinalizerNow := &Decision{State: StateDeleted, Step: StepRemoveFinalizer}
	left := &Decision{State: StateDeleted, Step: StepWait}
	runCheck(t, "deleted", []expect{
		{"not deleted", guarded(), nil},
		{"release exists", guarded(beingDeleted, newest(1, api.StatusDeployed, desired)), nil},
		{"objects exist", guarded(beingDeleted, orphans), nil},
		{"objects may exist", guarded(beingDeleted, unsearched), nil},
		{"objects may exist, no free name", guarded(beingDeleted, unsearched, func(o *Observation) { o.Conflict = true }), removeFinalizerNow},
		{"objects may exist, release not owned", guarded(beingDeleted, unsearched, newest(1, api.StatusDeployed, ""), notOwned), removeFinalizerNow},
		{"no release", guarded(beingDeleted), removeFinalizerNow},
		{"no release, orphaned", guarded(beingDeleted, orphan), removeFinalizerNow},
		{"release not owned", guarded(beingDeleted, newest(1, api.StatusDeployed, ""), notOwned), removeFinalizerNow},
		{"finalizer removed by a user", guarded(beingDeleted, noFinalizer, newest(1, api.StatusDeployed, desired)), left},
		{"only finalizers of other controllers", guarded(beingDeleted, noFinalizer), left},
		{"finalizer of the operator-sdk, no release", guarded(beingDeleted, noFinalizer, formerFinalizer), removeFinalizerNow},
		{"finalizer of the operator-sdk", guarded(beingDeleted, noFinalizer, formerFinalizer, newest(1, api.StatusDeployed, ""), inherited), nil},
		{"release of the operator-sdk", guarded(beingDeleted, newest(1, api.StatusDeployed, ""), inherited), nil},
	})
}

func TestChain_InUse(t *testing.T) {
	for _, after := range []time.Duration{0, time.Minute} {
		o := guarded(beingDeleted, newest(1, api.StatusDeployed, desired), inUse)
		o.Dependents.After = after
		if got, want := Next(o), (Decision{State: StateInUse, Step: StepWait, After: after}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

func TestChain_Deleting(t *testing.T) {
	uninstall := &Decision{State: StateDeleting, Step: StepUninstall}
	wait := func(after time.Duration) *Decision {
		return &Decision{State: StateDeleting, Step: StepWait, After: after}
	}
	deployed := newest(1, api.StatusDeployed, desired)
	runCheck(t, "deleting", []expect{
		{"not deleted", guarded(deployed), nil},
		{"deployed", guarded(beingDeleted, deployed), uninstall},
		{"held", guarded(beingDeleted, newest(4, api.StatusDeployed, "another"), heldAt(2)), uninstall},
		{"pending", guarded(beingDeleted, newest(1, api.StatusPendingInstall, desired)), uninstall},
		{"begun before", guarded(beingDeleted, newest(1, api.StatusUninstalling, desired)), uninstall},
		{"upgrade of another program", guarded(beingDeleted, newest(2, api.StatusPendingUpgrade, ""), byAnotherProgram), uninstall},
		{"uninstall of another program", guarded(beingDeleted, newest(2, api.StatusUninstalling, ""), byAnotherProgram, began(20*time.Second)), wait(40 * time.Second)},
		{"uninstall of another program timed out", guarded(beingDeleted, newest(2, api.StatusUninstalling, ""), byAnotherProgram, began(time.Minute)), uninstall},
		{"objects without a record", guarded(beingDeleted, orphans), uninstall},
		{"objects may exist without a record", guarded(beingDeleted, unsearched), uninstall},
		{"failed recently", guarded(beingDeleted, deployed, failedTo(gone, 1, 0)), wait(time.Second)},
		{"an upgrade failed recently", guarded(beingDeleted, deployed, failedTo(ofSpec, 9, 0)), uninstall},
		{"release of the operator-sdk", guarded(beingDeleted, newest(1, api.StatusDeployed, ""), inherited), uninstall},
		{"release of the operator-sdk, orphan requested", guarded(beingDeleted, newest(1, api.StatusDeployed, ""), inherited, orphan), &Decision{State: StateDeleting, Step: StepOrphan}},
		{"orphan requested", guarded(beingDeleted, deployed, orphan), &Decision{State: StateDeleting, Step: StepOrphan}},
		{"orphan requested, failed recently", guarded(beingDeleted, deployed, orphan, failedTo(gone, 2, 0)), wait(2 * time.Second)},
		{"orphan requested, another program uninstalls", guarded(beingDeleted, newest(2, api.StatusUninstalling, ""), byAnotherProgram, orphan), &Decision{State: StateDeleting, Step: StepOrphan}},
	})
}
