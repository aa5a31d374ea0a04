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

func deletionIsPaused(o *Observation) { o.Paused, o.PausedDeletion = true, true }

func TestDeletionPaused(t *testing.T) {
	deployed := newest(1, api.StatusDeployed, desired)
	keep := &Decision{State: StatePaused, Step: StepWait, Pending: Pending{StateDeleting, StepUninstall}}
	runCheck(t, "deletionPaused", []expect{
		{"it stays", guarded(deletionIsPaused, deployed), nil},
		{"it goes, and only changes are paused", guarded(beingDeleted, isPaused, deployed), nil},
		{"it goes, and nothing is paused", guarded(beingDeleted, deployed), nil},
		{"it goes, and that is paused", guarded(beingDeleted, deletionIsPaused, deployed), keep},
		{"it goes, that is paused, and its release is gone", guarded(beingDeleted, deletionIsPaused), keep},
		{"somebody took the finalizer away", guarded(beingDeleted, deletionIsPaused, noFinalizer, deployed), nil},
		{"it goes with the operator-sdk's finalizer, and that is paused", guarded(beingDeleted, deletionIsPaused, noFinalizer, formerFinalizer, deployed), keep},
	})
}

func TestDeleted(t *testing.T) {
	letGo := &Decision{State: StateDeleted, Step: StepRemoveFinalizer}
	left := &Decision{State: StateDeleted, Step: StepWait}
	runCheck(t, "deleted", []expect{
		{"it stays", guarded(), nil},
		{"its release is there", guarded(beingDeleted, newest(1, api.StatusDeployed, desired)), nil},
		{"its objects are there", guarded(beingDeleted, orphans), nil},
		{"its objects may be there", guarded(beingDeleted, unsearched), nil},
		{"its objects may be there, and the names are others'", guarded(beingDeleted, unsearched, func(o *Observation) { o.Conflict = true }), letGo},
		{"its objects may be there, and the release is another's", guarded(beingDeleted, unsearched, newest(1, api.StatusDeployed, ""), ofAnother), letGo},
		{"its release is gone", guarded(beingDeleted), letGo},
		{"its release is gone, and was to stay", guarded(beingDeleted, orphan), letGo},
		{"the release is another's", guarded(beingDeleted, newest(1, api.StatusDeployed, ""), ofAnother), letGo},
		{"somebody took the finalizer away", guarded(beingDeleted, noFinalizer, newest(1, api.StatusDeployed, desired)), left},
		{"other finalizers hold it", guarded(beingDeleted, noFinalizer), left},
		{"the operator-sdk's finalizer holds it, and its release is gone", guarded(beingDeleted, noFinalizer, formerFinalizer), letGo},
		{"the operator-sdk's finalizer holds it", guarded(beingDeleted, noFinalizer, formerFinalizer, newest(1, api.StatusDeployed, ""), inherited), nil},
		{"the operator-sdk has made the release", guarded(beingDeleted, newest(1, api.StatusDeployed, ""), inherited), nil},
	})
}

func TestDeleting(t *testing.T) {
	uninstall := &Decision{State: StateDeleting, Step: StepUninstall}
	wait := func(after time.Duration) *Decision {
		return &Decision{State: StateDeleting, Step: StepWait, After: after}
	}
	deployed := newest(1, api.StatusDeployed, desired)
	runCheck(t, "deleting", []expect{
		{"it stays", guarded(deployed), nil},
		{"deployed", guarded(beingDeleted, deployed), uninstall},
		{"held", guarded(beingDeleted, newest(4, api.StatusDeployed, "another"), heldAt(2)), uninstall},
		{"pending", guarded(beingDeleted, newest(1, api.StatusPendingInstall, desired)), uninstall},
		{"begun before", guarded(beingDeleted, newest(1, api.StatusUninstalling, desired)), uninstall},
		{"another's upgrade", guarded(beingDeleted, newest(2, api.StatusPendingUpgrade, ""), byOthers), uninstall},
		{"another's uninstall", guarded(beingDeleted, newest(2, api.StatusUninstalling, ""), byOthers, began(20*time.Second)), wait(40 * time.Second)},
		{"another's uninstall has passed its time", guarded(beingDeleted, newest(2, api.StatusUninstalling, ""), byOthers, began(time.Minute)), uninstall},
		{"objects without a record", guarded(beingDeleted, orphans), uninstall},
		{"perhaps objects without a record", guarded(beingDeleted, unsearched), uninstall},
		{"failed just now", guarded(beingDeleted, deployed, failedTo(gone, 1, 0)), wait(time.Second)},
		{"an upgrade failed just now", guarded(beingDeleted, deployed, failedTo(ofSpec, 9, 0)), uninstall},
		{"made by the operator-sdk", guarded(beingDeleted, newest(1, api.StatusDeployed, ""), inherited), uninstall},
		{"made by the operator-sdk, and to stay", guarded(beingDeleted, newest(1, api.StatusDeployed, ""), inherited, orphan), &Decision{State: StateDeleting, Step: StepOrphan}},
		{"it is to stay", guarded(beingDeleted, deployed, orphan), &Decision{State: StateDeleting, Step: StepOrphan}},
		{"it is to stay, and letting go failed just now", guarded(beingDeleted, deployed, orphan, failedTo(gone, 2, 0)), wait(2 * time.Second)},
		{"it is to stay, and somebody uninstalls it", guarded(beingDeleted, newest(2, api.StatusUninstalling, ""), byOthers, orphan), &Decision{State: StateDeleting, Step: StepOrphan}},
	})
}
