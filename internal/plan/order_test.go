package plan

import (
	"testing"
	"time"

	"github.com/chartwright/chartwright/internal/api"
)

// TestNextOrder: where several checks apply, the first in the chain counts.
func TestNextOrder(t *testing.T) {
	conflicts := func(o *Observation) { o.Conflict = true }
	adoptable := func(o *Observation) { o.Adoptable, o.Newest.Owned, o.Newest.WrittenByUs = true, false, false }
	deployed := newest(2, api.StatusDeployed, desired)
	old := newest(2, api.StatusDeployed, "another")
	for _, test := range []struct {
		name  string
		o     Observation
		state State
		step  Step
	}{
		{"what runs comes before deletion", guarded(running(StepInstall), beingDeleted), StateBusy, StepWait},
		{"what runs comes before a pause", guarded(running(StepInstall), isPaused), StateBusy, StepWait},

		{"deletion comes before an invalid spec", guarded(beingDeleted, isInvalid, deployed), StateDeleting, StepUninstall},
		{"deletion comes before a conflict", guarded(beingDeleted, conflicts), StateDeleted, StepRemoveFinalizer},
		{"deletion comes before a pause", guarded(beingDeleted, isPaused, deployed), StateDeleting, StepUninstall},
		{"the end of a deletion comes before a pause", guarded(beingDeleted, isPaused), StateDeleted, StepRemoveFinalizer},
		{"a pause of deletions comes before deletion", guarded(beingDeleted, deletionIsPaused, deployed), StatePaused, StepWait},
		{"a pause of deletions comes before the end of one", guarded(beingDeleted, deletionIsPaused), StatePaused, StepWait},
		{"nobody can pause what has no finalizer any more", guarded(beingDeleted, deletionIsPaused, noFinalizer, deployed), StateDeleted, StepWait},
		{"deletion comes before a rollback", guarded(beingDeleted, deployed, asks(1)), StateDeleting, StepUninstall},
		{"deletion comes before a hold", guarded(beingDeleted, newest(3, api.StatusFailed, "another"), heldAt(1)), StateDeleting, StepUninstall},

		{"a pause comes before a conflict", guarded(isPaused, conflicts), StatePaused, StepWait},
		{"a pause comes before the finalizer", guarded(isPaused, noFinalizer), StatePaused, StepWait},
		{"a pause comes before unlocking", guarded(isPaused, newest(2, api.StatusPendingUpgrade, desired)), StatePaused, StepWait},
		{"a pause comes before finishing an uninstall", guarded(isPaused, newest(2, api.StatusUninstalling, desired)), StatePaused, StepWait},
		{"a pause comes before a rollback", guarded(isPaused, deployed, asks(1)), StatePaused, StepWait},
		{"a pause comes before a repair", guarded(isPaused, deployed, damaged), StatePaused, StepWait},
		{"a pause comes before tests", guarded(isPaused, deployed, asksForTests), StatePaused, StepWait},

		{"a conflict comes before the finalizer", guarded(conflicts, noFinalizer), StateConflict, StepWait},
		{"an invalid spec needs no finalizer", guarded(isInvalid, noFinalizer), StateInvalid, StepWait},
		{"an invalid spec needs one where something runs", guarded(isInvalid, noFinalizer, deployed), StateUnguarded, StepAddFinalizer},
		{"the finalizer comes before an install", guarded(noFinalizer), StateUnguarded, StepAddFinalizer},
		{"the finalizer comes before unlocking", guarded(noFinalizer, newest(1, api.StatusPendingInstall, desired)), StateUnguarded, StepAddFinalizer},
		{"the finalizer comes before a rollback", guarded(noFinalizer, deployed, asks(1)), StateUnguarded, StepAddFinalizer},

		{"a record is restored before an upgrade", guarded(old, byOthers, isStripped), StateStripped, StepRestore},
		{"a record is restored before it is unlocked", guarded(newest(2, api.StatusPendingUpgrade, ""), byOthers, isStripped), StateStripped, StepRestore},
		{"a record is restored before a held release goes back", guarded(old, byOthers, isStripped, heldAt(1)), StateStripped, StepRestore},
		{"a record is restored before a rollback", guarded(old, byOthers, isStripped, asks(1)), StateStripped, StepRestore},
		{"a record is restored under an invalid spec", guarded(old, byOthers, isStripped, isInvalid), StateStripped, StepRestore},
		{"deletion comes before a record is restored", guarded(old, byOthers, isStripped, beingDeleted), StateDeleting, StepUninstall},
		{"a pause comes before a record is restored", guarded(old, byOthers, isStripped, isPaused), StatePaused, StepWait},
		{"an uninstall by the helm CLI restores nothing", guarded(newest(2, api.StatusUninstalling, ""), byOthers, isStripped), StateUninstalling, StepWait},
		{"what somebody else has changed is upgraded", guarded(old, byOthers), StateUnmanaged, StepUpgrade},

		{"a lock comes before an upgrade", guarded(newest(2, api.StatusPendingUpgrade, "another")), StateLocked, StepUnlock},
		{"a lock comes before a rollback", guarded(newest(3, api.StatusPendingUpgrade, desired), asks(1)), StateLocked, StepUnlock},
		{"a rollback that was cut short is a lock first", guarded(newest(3, api.StatusPendingRollback, "another"), heldAt(1)), StateLocked, StepUnlock},
		{"a lock comes before what is superseded", guarded(newest(3, api.StatusPendingUpgrade, desired), twoDeployed), StateLocked, StepUnlock},
		{"deletion comes before what is superseded", guarded(deployed, twoDeployed, beingDeleted), StateDeleting, StepUninstall},
		{"a pause comes before what is superseded", guarded(deployed, twoDeployed, isPaused), StatePaused, StepWait},
		{"a conflict comes before what is superseded", guarded(deployed, twoDeployed, conflicts), StateConflict, StepWait},
		{"the finalizer comes before what is superseded", guarded(deployed, twoDeployed, noFinalizer), StateUnguarded, StepAddFinalizer},
		{"what is superseded comes before a rollback", guarded(deployed, twoDeployed, asks(1)), StateUntidy, StepTidy},
		{"what is superseded comes before a hold", guarded(newest(3, api.StatusFailed, "another"), twoDeployed, heldAt(1)), StateUntidy, StepTidy},
		{"what is superseded comes before a repair", guarded(deployed, twoDeployed, damaged), StateUntidy, StepTidy},
		{"what is superseded comes before a verification", guarded(old, twoDeployed, unknown, isInvalid), StateUntidy, StepTidy},
		{"what is superseded comes before an invalid spec", guarded(deployed, twoDeployed, isInvalid), StateUntidy, StepTidy},
		{"what is superseded comes before what somebody else has made", guarded(newest(3, api.StatusDeployed, ""), byOthers, twoDeployed), StateUntidy, StepTidy},
		{"what is superseded comes before another try", guarded(newest(3, api.StatusFailed, desired), twoDeployed), StateUntidy, StepTidy},
		{"what is superseded comes before an upgrade", guarded(old, twoDeployed), StateUntidy, StepTidy},
		{"what is to be superseded and failed just now keeps an upgrade waiting", guarded(old, twoDeployed, failedTo(ofSpec, 1, 0)), StateUntidy, StepWait},
		{"an uninstall that has begun supersedes nothing", guarded(newest(3, api.StatusUninstalling, desired), twoDeployed), StateUninstalling, StepUninstall},
		{"an uninstall is finished before an install", guarded(newest(2, api.StatusUninstalling, desired)), StateUninstalling, StepUninstall},
		{"an uninstall is finished before a rollback", guarded(newest(2, api.StatusUninstalling, desired), asks(1)), StateUninstalling, StepUninstall},

		{"a rollback comes before an invalid spec", guarded(isInvalid, deployed, asks(1)), StateRollbackRequested, StepRollback},
		{"a rollback comes before another try", guarded(newest(3, api.StatusFailed, desired), asks(1), failedTo(ofSpec, 3, time.Hour)), StateRollbackRequested, StepRollback},
		{"a rollback comes before an upgrade", guarded(old, asks(1)), StateRollbackRequested, StepRollback},
		{"a rollback comes before a repair", guarded(deployed, damaged, asks(1)), StateRollbackRequested, StepRollback},
		{"a rollback comes before a hold", guarded(newest(3, api.StatusFailed, "another"), heldAt(2), asks(1)), StateRollbackRequested, StepRollback},
		{"a refusal comes before an upgrade", guarded(old, asks(0)), StateRollbackRequested, StepRefuse},
		{"a request for none ends a hold", guarded(old, heldAt(1), asksForNone), StateRollbackRequested, StepResume},
		{"a first install comes before any rollback", guarded(asks(1)), StateAbsent, StepInstall},
		{"what is to be adopted comes before any rollback", guarded(newest(2, api.StatusDeployed, ""), adoptable, asks(1)), StateUnmanaged, StepAdopt},

		{"a held release is repaired", guarded(old, heldAt(1), damaged), StateDrifted, StepRepair},
		{"a held release is repaired under an invalid spec", guarded(old, heldAt(1), damaged, isInvalid), StateDrifted, StepRepair},
		{"a held release that somebody upgraded goes back", guarded(newest(3, api.StatusDeployed, ""), byOthers, heldAt(1)), StateHeld, StepRollback},
		{"so it does under an invalid spec", guarded(newest(3, api.StatusDeployed, ""), byOthers, heldAt(1), isInvalid), StateHeld, StepRollback},
		{"a held release is brought back before its objects are repaired", guarded(newest(3, api.StatusDeployed, ""), byOthers, heldAt(1), damaged), StateHeld, StepRollback},
		{"a held release is not upgraded", guarded(old, heldAt(1)), StateHeld, StepWait},
		{"a held release needs no valid spec", guarded(old, heldAt(1), isInvalid), StateHeld, StepWait},
		{"a held release is verified", guarded(old, heldAt(1), unknown), StateDue, StepVerify},
		{"a held release is tested", guarded(old, heldAt(1), asksForTests), StateUntested, StepTest},
		{"an upgrade ends a hold that is over", guarded(old, heldAt(1), specEdited), StateOutOfSync, StepUpgrade},
		{"a hold that is over ends where the digests are equal", guarded(deployed, heldAt(1), specEdited), StateHeld, StepResume},
		{"an invalid spec leaves what was held", guarded(deployed, heldAt(1), specEdited, isInvalid), StateInvalid, StepWait},
		{"what was held and somebody uninstalled is installed", guarded(newest(3, api.StatusUninstalled, ""), heldAt(1)), StateAbsent, StepInstall},
		{"what was held and somebody uninstalled needs a valid spec", guarded(newest(3, api.StatusUninstalled, ""), heldAt(1), isInvalid), StateInvalid, StepWait},

		{"a repair comes before an invalid spec", guarded(deployed, damaged, isInvalid), StateDrifted, StepRepair},
		{"a repair comes before a verification", guarded(old, damaged, unknown, isInvalid), StateDrifted, StepRepair},
		{"a verification comes before an invalid spec", guarded(old, unknown, isInvalid), StateUnverified, StepVerify},
		{"a verification that a person asks for comes before an invalid spec", guarded(old, asksToVerify, isInvalid), StateUnverified, StepVerify},
		{"a verification comes before another try", guarded(old, unknown, failedTo(ofSpec, 1, time.Hour)), StateUnverified, StepVerify},
		{"a verification comes before a try that has to wait", guarded(old, unknown, failedTo(ofSpec, 1, 0)), StateUnverified, StepVerify},
		{"a verification that has to wait leaves an invalid spec as it is", guarded(old, unknown, isInvalid, repairFailed), StateInvalid, StepWait},
		{"a verification that has to wait holds up no other try", guarded(old, unknown, failedTo(ofSpec, 1, time.Hour), repairFailed), StateFailed, StepUpgrade},
		{"what failed is tried again before anything is verified", guarded(newest(3, api.StatusFailed, desired), unknown, failedTo(ofSpec, 1, time.Hour)), StateFailed, StepUpgrade},
		{"an upgrade comes where nothing is known", guarded(old, unknown), StateOutOfSync, StepUpgrade},
		{"a held release is verified under an invalid spec", guarded(old, heldAt(1), unknown, isInvalid), StateUnverified, StepVerify},
		{"an invalid spec comes before an install", guarded(isInvalid), StateInvalid, StepWait},
		{"an invalid spec comes before another try", guarded(isInvalid, newest(2, api.StatusFailed, desired)), StateInvalid, StepWait},

		{"a failure comes before drift of what it left", guarded(newest(3, api.StatusFailed, desired), damaged), StateFailed, StepUpgrade},
		{"what fails for good goes back", guarded(newest(3, api.StatusFailed, desired), goesBack(3), failedTo(ofSpec, 3, 0)), StateFailed, StepRollback},
		{"a nudge needs no backoff", guarded(newest(3, api.StatusFailed, desired), failedTo(ofSpec, 9, 0), nudged), StateFailed, StepUpgrade},
		{"a nudge needs no backoff of a repair", guarded(deployed, damaged, repairFailed, nudged), StateDrifted, StepRepair},

		{"an upgrade comes before a period", guarded(old, func(o *Observation) { o.Period, o.Applied = 1, now.Add(-time.Hour) }), StateOutOfSync, StepUpgrade},
		{"an upgrade comes before a verification", guarded(old, asksToVerify), StateOutOfSync, StepUpgrade},
		{"a verification comes before tests", guarded(deployed, asksToVerify, asksForTests), StateDue, StepVerify},
		{"an upgrade comes before tests", guarded(old, asksForTests), StateOutOfSync, StepUpgrade},
		{"the record of a finished Job comes before tests", guarded(deployed, asksForTests, func(o *Observation) { o.Unrecorded = true }), StateUnrecorded, StepRecord},
		{"tests come last", guarded(deployed, asksForTests), StateUntested, StepTest},
		{"nothing to do", guarded(deployed), StateInSync, StepWait},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := Next(test.o); got.State != test.state || got.Step != test.step {
				t.Errorf("%+v, want state %s and step %s", got, test.state, test.step)
			}
		})
	}
}

// TestPendingStep: a pause tells what it keeps from being done.
func TestPendingStep(t *testing.T) {
	deployed := newest(2, api.StatusDeployed, desired)
	for _, test := range []struct {
		name string
		o    Observation
		want Step
	}{
		{"an install", guarded(), StepInstall},
		{"the finalizer", guarded(noFinalizer), StepAddFinalizer},
		{"an upgrade", guarded(newest(2, api.StatusDeployed, "another")), StepUpgrade},
		{"a rollback", guarded(deployed, asks(1)), StepRollback},
		{"a repair", guarded(deployed, damaged), StepRepair},
		{"what is to be superseded", guarded(deployed, twoDeployed), StepTidy},
		{"a verification", guarded(deployed, unknown, isInvalid), StepVerify},
		{"nothing", guarded(deployed), StepWait},
		{"a try that waits anyway", guarded(newest(2, api.StatusFailed, desired), failedTo(ofSpec, 3, 0)), StepWait},
		{"an uninstall", guarded(deployed, deletionIsPaused, beingDeleted), StepUninstall},
	} {
		t.Run(test.name, func(t *testing.T) {
			isPaused(&test.o)
			got := Next(test.o)
			if got.State != StatePaused || got.Step != StepWait || got.Pending.Step != test.want || got.Pending.State == "" {
				t.Errorf("%+v, want a pause and then %s", got, test.want)
			}
		})
	}
}
