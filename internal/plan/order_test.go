package plan

import (
	"testing"
	"time"

	"github.com/chartwright/chartwright/internal/api"
)

// TestNext_Precedence: if several checks apply, the first in the chain decides.
func TestNext_Precedence(t *testing.T) {
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
		{"a running action comes before deletion", guarded(running(StepInstall), beingDeleted), StateBusy, StepWait},
		{"a running action comes before a pause", guarded(running(StepInstall), isPaused), StateBusy, StepWait},

		{"deletion comes before an invalid spec", guarded(beingDeleted, isInvalid, deployed), StateDeleting, StepUninstall},
		{"deletion comes before a conflict", guarded(beingDeleted, conflicts), StateDeleted, StepRemoveFinalizer},
		{"deletion comes before a pause", guarded(beingDeleted, isPaused, deployed), StateDeleting, StepUninstall},
		{"the end of a deletion comes before a pause", guarded(beingDeleted, isPaused), StateDeleted, StepRemoveFinalizer},
		{"a pause of deletions comes before deletion", guarded(beingDeleted, deletionIsPaused, deployed), StatePaused, StepWait},
		{"a pause of deletions comes before the end of one", guarded(beingDeleted, deletionIsPaused), StatePaused, StepWait},
		{"a pause does not apply without a finalizer", guarded(beingDeleted, deletionIsPaused, noFinalizer, deployed), StateDeleted, StepWait},
		{"deletion comes before a rollback", guarded(beingDeleted, deployed, requestsRollback(1)), StateDeleting, StepUninstall},
		{"deletion comes before a hold", guarded(beingDeleted, newest(3, api.StatusFailed, "another"), heldAt(1)), StateDeleting, StepUninstall},

		{"dependents come before an uninstall", guarded(beingDeleted, deployed, inUse), StateInUse, StepWait},
		{"an uninstall that has begun comes before dependents", guarded(beingDeleted, newest(2, api.StatusUninstalling, desired), inUse), StateDeleting, StepUninstall},
		{"the end of a deletion comes before dependents", guarded(beingDeleted, inUse), StateDeleted, StepRemoveFinalizer},
		{"a pause of deletions comes before dependents", guarded(beingDeleted, deletionIsPaused, deployed, inUse), StatePaused, StepWait},
		{"dependents do not delay orphaning", guarded(beingDeleted, orphan, deployed, inUse), StateDeleting, StepOrphan},

		{"a pause comes before a conflict", guarded(isPaused, conflicts), StatePaused, StepWait},
		{"a pause comes before the finalizer", guarded(isPaused, noFinalizer), StatePaused, StepWait},
		{"a pause comes before unlocking", guarded(isPaused, newest(2, api.StatusPendingUpgrade, desired)), StatePaused, StepWait},
		{"a pause comes before finishing an uninstall", guarded(isPaused, newest(2, api.StatusUninstalling, desired)), StatePaused, StepWait},
		{"a pause comes before a rollback", guarded(isPaused, deployed, requestsRollback(1)), StatePaused, StepWait},
		{"a pause comes before a repair", guarded(isPaused, deployed, drifted), StatePaused, StepWait},
		{"a pause comes before tests", guarded(isPaused, deployed, requestsTests), StatePaused, StepWait},

		{"a conflict comes before the finalizer", guarded(conflicts, noFinalizer), StateConflict, StepWait},
		{"an invalid spec needs no finalizer", guarded(isInvalid, noFinalizer), StateInvalid, StepWait},
		{"an invalid spec needs one where something runs", guarded(isInvalid, noFinalizer, deployed), StateUnguarded, StepAddFinalizer},
		{"the finalizer comes before an install", guarded(noFinalizer), StateUnguarded, StepAddFinalizer},
		{"the finalizer comes before unlocking", guarded(noFinalizer, newest(1, api.StatusPendingInstall, desired)), StateUnguarded, StepAddFinalizer},
		{"the finalizer comes before a rollback", guarded(noFinalizer, deployed, requestsRollback(1)), StateUnguarded, StepAddFinalizer},

		{"an unknown account comes before restoring a record", guarded(old, byAnotherProgram, isStripped, hasNoAccount), StateInvalid, StepWait},
		{"an unknown account comes before finishing an uninstall", guarded(newest(2, api.StatusUninstalling, desired), hasNoAccount), StateInvalid, StepWait},
		{"an unknown account comes before a rollback", guarded(deployed, requestsRollback(1), hasNoAccount), StateInvalid, StepWait},
		{"an unknown account comes before a hold", guarded(newest(3, api.StatusFailed, "another"), heldAt(1), hasNoAccount), StateInvalid, StepWait},
		{"an unknown account comes before a repair", guarded(deployed, drifted, hasNoAccount), StateInvalid, StepWait},
		{"an unknown account comes before a verification", guarded(deployed, requestsVerification, heldAt(2), hasNoAccount), StateInvalid, StepWait},
		{"an unknown account comes before tests", guarded(deployed, requestsTests, heldAt(2), hasNoAccount), StateInvalid, StepWait},
		{"deletion comes before an unknown account", guarded(beingDeleted, deployed, hasNoAccount), StateDeleting, StepUninstall},

		{"a record is restored before an upgrade", guarded(old, byAnotherProgram, isStripped), StateStripped, StepRestore},
		{"a record is restored before it is unlocked", guarded(newest(2, api.StatusPendingUpgrade, ""), byAnotherProgram, isStripped), StateStripped, StepRestore},
		{"a record is restored before a held release goes back", guarded(old, byAnotherProgram, isStripped, heldAt(1)), StateStripped, StepRestore},
		{"a record is restored before a rollback", guarded(old, byAnotherProgram, isStripped, requestsRollback(1)), StateStripped, StepRestore},
		{"a record is restored under an invalid spec", guarded(old, byAnotherProgram, isStripped, isInvalid), StateStripped, StepRestore},
		{"deletion comes before a record is restored", guarded(old, byAnotherProgram, isStripped, beingDeleted), StateDeleting, StepUninstall},
		{"a pause comes before a record is restored", guarded(old, byAnotherProgram, isStripped, isPaused), StatePaused, StepWait},
		{"an uninstall by the helm CLI restores nothing", guarded(newest(2, api.StatusUninstalling, ""), byAnotherProgram, isStripped), StateUninstalling, StepWait},
		{"a release changed by another program is upgraded", guarded(old, byAnotherProgram), StateUnmanaged, StepUpgrade},

		{"a lock comes before an upgrade", guarded(newest(2, api.StatusPendingUpgrade, "another")), StateLocked, StepUnlock},
		{"a lock comes before a rollback", guarded(newest(3, api.StatusPendingUpgrade, desired), requestsRollback(1)), StateLocked, StepUnlock},
		{"a lock comes before an interrupted rollback", guarded(newest(3, api.StatusPendingRollback, "another"), heldAt(1)), StateLocked, StepUnlock},
		{"a lock comes before inconsistent records", guarded(newest(3, api.StatusPendingUpgrade, desired), inconsistent), StateLocked, StepUnlock},
		{"deletion comes before inconsistent records", guarded(deployed, inconsistent, beingDeleted), StateDeleting, StepUninstall},
		{"a pause comes before inconsistent records", guarded(deployed, inconsistent, isPaused), StatePaused, StepWait},
		{"a conflict comes before inconsistent records", guarded(deployed, inconsistent, conflicts), StateConflict, StepWait},
		{"the finalizer comes before inconsistent records", guarded(deployed, inconsistent, noFinalizer), StateUnguarded, StepAddFinalizer},
		{"inconsistent records come before a rollback", guarded(deployed, inconsistent, requestsRollback(1)), StateUntidy, StepTidy},
		{"inconsistent records come before a hold", guarded(newest(3, api.StatusFailed, "another"), inconsistent, heldAt(1)), StateUntidy, StepTidy},
		{"inconsistent records come before a repair", guarded(deployed, inconsistent, drifted), StateUntidy, StepTidy},
		{"inconsistent records come before a verification", guarded(old, inconsistent, unverified, isInvalid), StateUntidy, StepTidy},
		{"inconsistent records come before an invalid spec", guarded(deployed, inconsistent, isInvalid), StateUntidy, StepTidy},
		{"inconsistent records come before a revision of another program", guarded(newest(3, api.StatusDeployed, ""), byAnotherProgram, inconsistent), StateUntidy, StepTidy},
		{"inconsistent records come before a retry", guarded(newest(3, api.StatusFailed, desired), inconsistent), StateUntidy, StepTidy},
		{"inconsistent records come before an upgrade", guarded(old, inconsistent), StateUntidy, StepTidy},
		{"a failed tidy step delays an upgrade", guarded(old, inconsistent, failedTo(ofSpec, 1, 0)), StateUntidy, StepWait},
		{"an unfinished uninstall comes before inconsistent records", guarded(newest(3, api.StatusUninstalling, desired), inconsistent), StateUninstalling, StepUninstall},
		{"a dependency comes before an install", guarded(waits), StateWaiting, StepWait},
		{"a dependency comes before an upgrade", guarded(old, waits), StateWaiting, StepWait},
		{"a dependency comes before an adoption", guarded(deployed, adoptable, waits), StateWaiting, StepWait},
		{"a dependency comes before a move", guarded(deployed, waits, func(o *Observation) { o.MoveTo = "there" }), StateWaiting, StepWait},
		{"a dependency comes before a retry", guarded(newest(3, api.StatusFailed, desired), waits), StateWaiting, StepWait},
		{"a dependency comes before a retry without a record", guarded(old, failedTo(ofSpec, 1, time.Hour), waits), StateWaiting, StepWait},
		{"a dependency does not matter in sync", guarded(deployed, waits), StateInSync, StepWait},
		{"a dependency does not matter to a postponed release", guarded(old, waits, func(o *Observation) { o.Postponed = true }), StatePostponed, StepWait},
		{"a rollback comes before a dependency", guarded(old, waits, requestsRollback(1)), StateRollbackRequested, StepRollback},
		{"a rollback after failures comes before a dependency", guarded(newest(3, api.StatusFailed, desired), failedTo(ofSpec, 3, time.Hour), waits, func(o *Observation) { o.Retries, o.LastGood = 3, 2 }), StateFailed, StepRollback},
		{"drift comes before a dependency", guarded(old, waits, drifted), StateDrifted, StepRepair},
		{"a verification comes before a dependency", guarded(old, waits, unverified), StateUnverified, StepVerify},
		{"an invalid spec comes before a dependency", guarded(old, waits, isInvalid), StateInvalid, StepWait},
		{"an unfinished uninstall comes before a dependency", guarded(newest(2, api.StatusUninstalling, desired), waits), StateUninstalling, StepUninstall},
		{"the finalizer comes before a dependency", guarded(noFinalizer, waits), StateUnguarded, StepAddFinalizer},

		{"an uninstall is finished before an install", guarded(newest(2, api.StatusUninstalling, desired)), StateUninstalling, StepUninstall},
		{"an uninstall is finished before a rollback", guarded(newest(2, api.StatusUninstalling, desired), requestsRollback(1)), StateUninstalling, StepUninstall},

		{"a rollback comes before an invalid spec", guarded(isInvalid, deployed, requestsRollback(1)), StateRollbackRequested, StepRollback},
		{"a rollback comes before a retry", guarded(newest(3, api.StatusFailed, desired), requestsRollback(1), failedTo(ofSpec, 3, time.Hour)), StateRollbackRequested, StepRollback},
		{"a rollback comes before an upgrade", guarded(old, requestsRollback(1)), StateRollbackRequested, StepRollback},
		{"a rollback comes before a repair", guarded(deployed, drifted, requestsRollback(1)), StateRollbackRequested, StepRollback},
		{"a rollback comes before a hold", guarded(newest(3, api.StatusFailed, "another"), heldAt(2), requestsRollback(1)), StateRollbackRequested, StepRollback},
		{"a refusal comes before an upgrade", guarded(old, requestsRollback(0)), StateRollbackRequested, StepRefuse},
		{"a request to resume ends a hold", guarded(old, heldAt(1), requestsResume), StateRollbackRequested, StepResume},
		{"a first install comes before any rollback", guarded(requestsRollback(1)), StateAbsent, StepInstall},
		{"an adoption comes before any rollback", guarded(newest(2, api.StatusDeployed, ""), adoptable, requestsRollback(1)), StateUnmanaged, StepAdopt},

		{"a held release is repaired", guarded(old, heldAt(1), drifted), StateDrifted, StepRepair},
		{"a held release is repaired under an invalid spec", guarded(old, heldAt(1), drifted, isInvalid), StateDrifted, StepRepair},
		{"a held release upgraded by another program is rolled back", guarded(newest(3, api.StatusDeployed, ""), byAnotherProgram, heldAt(1)), StateHeld, StepRollback},
		{"a held release upgraded by another program is rolled back under an invalid spec", guarded(newest(3, api.StatusDeployed, ""), byAnotherProgram, heldAt(1), isInvalid), StateHeld, StepRollback},
		{"the rollback of a held release comes before a repair", guarded(newest(3, api.StatusDeployed, ""), byAnotherProgram, heldAt(1), drifted), StateHeld, StepRollback},
		{"a held release is not upgraded", guarded(old, heldAt(1)), StateHeld, StepWait},
		{"a held release needs no valid spec", guarded(old, heldAt(1), isInvalid), StateHeld, StepWait},
		{"a held release is verified", guarded(old, heldAt(1), unverified), StateDue, StepVerify},
		{"a held release is tested", guarded(old, heldAt(1), requestsTests), StateUntested, StepTest},
		{"an upgrade ends an expired hold", guarded(old, heldAt(1), specEdited), StateOutOfSync, StepUpgrade},
		{"an expired hold ends if the digests are equal", guarded(deployed, heldAt(1), specEdited), StateHeld, StepResume},
		{"an invalid spec leaves the held revision", guarded(deployed, heldAt(1), specEdited, isInvalid), StateInvalid, StepWait},
		{"a held release that another program uninstalled is installed", guarded(newest(3, api.StatusUninstalled, ""), heldAt(1)), StateAbsent, StepInstall},
		{"a held release that another program uninstalled needs a valid spec", guarded(newest(3, api.StatusUninstalled, ""), heldAt(1), isInvalid), StateInvalid, StepWait},

		{"a repair comes before an invalid spec", guarded(deployed, drifted, isInvalid), StateDrifted, StepRepair},
		{"a repair comes before a verification", guarded(old, drifted, unverified, isInvalid), StateDrifted, StepRepair},
		{"a verification comes before an invalid spec", guarded(old, unverified, isInvalid), StateUnverified, StepVerify},
		{"a requested verification comes before an invalid spec", guarded(old, requestsVerification, isInvalid), StateUnverified, StepVerify},
		{"a verification comes before a retry", guarded(old, unverified, failedTo(ofSpec, 1, time.Hour)), StateUnverified, StepVerify},
		{"a verification comes before a retry that has to wait", guarded(old, unverified, failedTo(ofSpec, 1, 0)), StateUnverified, StepVerify},
		{"a verification that has to wait leaves an invalid spec as it is", guarded(old, unverified, isInvalid, repairFailed), StateInvalid, StepWait},
		{"a verification that has to wait delays no retry", guarded(old, unverified, failedTo(ofSpec, 1, time.Hour), repairFailed), StateFailed, StepUpgrade},
		{"a retry comes before a verification", guarded(newest(3, api.StatusFailed, desired), unverified, failedTo(ofSpec, 1, time.Hour)), StateFailed, StepUpgrade},
		{"an upgrade comes before an unverified release", guarded(old, unverified), StateOutOfSync, StepUpgrade},
		{"a held release is verified under an invalid spec", guarded(old, heldAt(1), unverified, isInvalid), StateUnverified, StepVerify},
		{"an invalid spec comes before an install", guarded(isInvalid), StateInvalid, StepWait},
		{"an invalid spec comes before a retry", guarded(isInvalid, newest(2, api.StatusFailed, desired)), StateInvalid, StepWait},

		{"a failure comes before drift of what it left", guarded(newest(3, api.StatusFailed, desired), drifted), StateFailed, StepUpgrade},
		{"repeated failures lead to a rollback", guarded(newest(3, api.StatusFailed, desired), rollsBackAfter(3), failedTo(ofSpec, 3, 0)), StateFailed, StepRollback},
		{"a retry request ends the backoff", guarded(newest(3, api.StatusFailed, desired), failedTo(ofSpec, 9, 0), retryRequested), StateFailed, StepUpgrade},
		{"a retry request ends the backoff of a repair", guarded(deployed, drifted, repairFailed, retryRequested), StateDrifted, StepRepair},

		{"an upgrade comes before a period", guarded(old, func(o *Observation) { o.Period, o.Applied = 1, now.Add(-time.Hour) }), StateOutOfSync, StepUpgrade},
		{"an upgrade comes before a verification", guarded(old, requestsVerification), StateOutOfSync, StepUpgrade},
		{"a verification comes before tests", guarded(deployed, requestsVerification, requestsTests), StateDue, StepVerify},
		{"an upgrade comes before tests", guarded(old, requestsTests), StateOutOfSync, StepUpgrade},
		{"the record of a finished Job comes before tests", guarded(deployed, requestsTests, func(o *Observation) { o.Unrecorded = true }), StateUnrecorded, StepRecord},
		{"tests come last", guarded(deployed, requestsTests), StateUntested, StepTest},
		{"nothing to do", guarded(deployed), StateInSync, StepWait},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := Next(test.o); got.State != test.state || got.Step != test.step {
				t.Errorf("%+v, want state %s and step %s", got, test.state, test.step)
			}
		})
	}
}

// TestNext_PauseNamesPendingStep: the decision names the step that the pause prevents.
func TestNext_PauseNamesPendingStep(t *testing.T) {
	deployed := newest(2, api.StatusDeployed, desired)
	for _, test := range []struct {
		name string
		o    Observation
		want Step
	}{
		{"an install", guarded(), StepInstall},
		{"the finalizer", guarded(noFinalizer), StepAddFinalizer},
		{"an upgrade", guarded(newest(2, api.StatusDeployed, "another")), StepUpgrade},
		{"a rollback", guarded(deployed, requestsRollback(1)), StepRollback},
		{"a repair", guarded(deployed, drifted), StepRepair},
		{"inconsistent records", guarded(deployed, inconsistent), StepTidy},
		{"a verification", guarded(deployed, unverified, isInvalid), StepVerify},
		{"nothing", guarded(deployed), StepWait},
		{"a retry that waits anyway", guarded(newest(2, api.StatusFailed, desired), failedTo(ofSpec, 3, 0)), StepWait},
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

func TestChain_InSync(t *testing.T) {
	deployed := newest(1, api.StatusDeployed, desired)
	runCheck(t, "inSync", []expect{
		{"deployed", guarded(deployed), &Decision{State: StateInSync, Step: StepWait}},
		{"until the period ends", guarded(deployed, func(o *Observation) { o.Period, o.Applied = time.Minute, now.Add(-20*time.Second) }), &Decision{State: StateInSync, Step: StepWait, After: 40 * time.Second}},
	})
}
