package plan

import (
	"cmp"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright/internal/api"
)

var now = time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)

const desired = "digest-of-the-spec"

// guarded returns the observation of a custom resource with our finalizer and without
// a release, after the changes.
func guarded(changes ...func(*Observation)) Observation {
	o := Observation{Now: now, Finalizer: true, Desired: desired, Applied: now}
	for _, change := range changes {
		change(&o)
	}
	return o
}

func newest(number int, status, digest string) func(*Observation) {
	return func(o *Observation) {
		o.Newest = &Revision{Number: number, Status: status, Digest: digest, Owned: true, WrittenByUs: true, Began: now, Timeout: time.Minute}
	}
}

// byAnotherProgram makes the helm CLI the author of the newest revision.
func byAnotherProgram(o *Observation) { o.Newest.WrittenByUs, o.Newest.Digest = false, "" }

// isStripped removes the annotations of the newest record.
func isStripped(o *Observation) { o.Newest.Stripped = true }

// began sets how long ago the action of the newest revision began. Its timeout is a
// minute.
func began(ago time.Duration) func(*Observation) {
	return func(o *Observation) { o.Newest.Began = now.Add(-ago) }
}

func notOwned(o *Observation) { o.Newest.Owned = false }

func beingDeleted(o *Observation) { o.Deleting = true }

func isPaused(o *Observation) { o.Paused = true }

func requestsVerification(o *Observation) { o.VerifyRequested = true }

func requestsTests(o *Observation) { o.TestRequested = true }

func noFinalizer(o *Observation) { o.Finalizer = false }

// formerFinalizer adds a finalizer of the operator-sdk.
func formerFinalizer(o *Observation) { o.Former = true }

func running(step Step) func(*Observation) {
	return func(o *Observation) { o.Running = &Running{Step: step, Since: now} }
}

// failedTo adds a failure.
func failedTo(target TargetKey, attempts int, ago time.Duration) func(*Observation) {
	return func(o *Observation) { o.Failure = &Failure{Target: target, Attempts: attempts, At: now.Add(-ago)} }
}

// expect runs one check.
type expect struct {
	name string
	o    Observation
	// want is nil if the check does not apply.
	want *Decision
}

// runCheck tests the check with this name.
func runCheck(t *testing.T, name string, tests []expect) {
	t.Helper()
	i := slices.IndexFunc(chain, func(c check) bool { return c.name == name })
	if i < 0 {
		t.Fatalf("no check is named %s", name)
	}
	tested := chain[i]
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			applies := tested.applies(test.o)
			if applies != (test.want != nil) {
				t.Fatalf("applies: %v, want %v", applies, test.want != nil)
			}
			if applies {
				got := tested.decide(test.o)
				got.State = cmp.Or(got.State, tested.state)
				if diff := gocmp.Diff(*test.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}

// movesTo requests another namespace for the release.
func movesTo(namespace string) func(*Observation) {
	return func(o *Observation) { o.MoveTo = namespace }
}

func TestChain_Moving(t *testing.T) {
	uninstall := &Decision{State: StateMoving, Step: StepUninstall}
	deployed, waits := newest(1, api.StatusDeployed, desired), TargetKey{Goal: GoalGone, Digest: "other"}
	waiting := func(o *Observation) { o.Failure.Waits = true }
	runCheck(t, "moving", []expect{
		{"same namespace", guarded(deployed), nil},
		{"another namespace", guarded(deployed, movesTo("other")), uninstall},
		{"failed revision", guarded(newest(1, api.StatusFailed, desired), movesTo("other")), uninstall},
		{"no release", guarded(movesTo("other")), nil},
		{"uninstall has begun", guarded(newest(1, api.StatusUninstalling, desired), movesTo("other")), nil},
		{"invalid spec", guarded(deployed, movesTo("other"), isInvalid), nil},
		{"not owned", guarded(deployed, movesTo("other"), notOwned), nil},
		{"held", guarded(newest(4, api.StatusDeployed, "another"), movesTo("other"), heldAt(2)), nil},
		{"approval missing", guarded(deployed, movesTo("other"), failedTo(waits, 1, time.Minute), waiting), &Decision{State: StateMoving, Step: StepWait, After: approvalBackoff - time.Minute}},
		{"approval for another namespace missing", guarded(deployed, movesTo("third"), failedTo(waits, 1, time.Minute), waiting), uninstall},
	})
	o := guarded(deployed, movesTo("other"))
	if Target(o) != waits || TargetOf(StepUninstall, o) != waits {
		t.Errorf("the targets are %+v and %+v, want %+v", Target(o), TargetOf(StepUninstall, o), waits)
	}
	if Reached(o) {
		t.Error("the target is reached before the move")
	}
}

func TestChain_Busy(t *testing.T) {
	runCheck(t, "busy", []expect{
		{"no action", guarded(), nil},
		{"an action runs", guarded(running(StepInstall)), &Decision{State: StateBusy, Step: StepWait}},
		{"an action runs during a deletion", guarded(running(StepUpgrade), beingDeleted), &Decision{State: StateBusy, Step: StepWait}},
	})
}

func TestChain_Paused(t *testing.T) {
	runCheck(t, "paused", []expect{
		{"not paused", guarded(), nil},
		{"paused", guarded(isPaused), &Decision{State: StatePaused, Step: StepWait}},
		{"paused with a release", guarded(isPaused, newest(1, api.StatusDeployed, "another")), &Decision{State: StatePaused, Step: StepWait}},
	})
}

func TestChain_Conflict(t *testing.T) {
	runCheck(t, "conflict", []expect{
		{"a free name", guarded(), nil},
		{"no free name", guarded(func(o *Observation) { o.Conflict = true }), &Decision{State: StateConflict, Step: StepWait, After: maxBackoff}},
	})
}

func TestChain_Invalid(t *testing.T) {
	runCheck(t, "invalid", []expect{
		{"valid spec", guarded(), nil},
		{"invalid spec", guarded(isInvalid), &Decision{State: StateInvalid, Step: StepWait}},
		{"values of a dependency", guarded(isInvalid, waits, valuesWait), &Decision{State: StateWaiting, Step: StepWait, After: time.Hour}},
		{"values of a dependency, deployed", guarded(isInvalid, waits, valuesWait, newest(1, api.StatusDeployed, "another")), &Decision{State: StateWaiting, Step: StepWait, After: time.Hour}},
		{"invalid spec, and a dependency", guarded(isInvalid, waits), &Decision{State: StateInvalid, Step: StepWait}},
		{"invalid spec of a held release", guarded(isInvalid, newest(4, api.StatusDeployed, "another"), heldAt(2)), nil},
		{"invalid spec after a hold", guarded(isInvalid, newest(4, api.StatusDeployed, "another"), heldAt(2), specEdited), &Decision{State: StateInvalid, Step: StepWait}},
	})
}

func TestChain_Unguarded(t *testing.T) {
	runCheck(t, "unguarded", []expect{
		{"with the finalizer", guarded(), nil},
		{"without", guarded(noFinalizer), &Decision{State: StateUnguarded, Step: StepAddFinalizer}},
		{"with the finalizer of the operator-sdk", guarded(noFinalizer, formerFinalizer), &Decision{State: StateUnguarded, Step: StepAddFinalizer}},
		{"with both finalizers", guarded(formerFinalizer), &Decision{State: StateUnguarded, Step: StepAddFinalizer}},
		{"with the finalizer of the operator-sdk and an invalid spec", guarded(noFinalizer, formerFinalizer, isInvalid), nil},
		{"without, invalid spec, no release", guarded(noFinalizer, isInvalid), nil},
		{"without, invalid spec, deployed", guarded(noFinalizer, isInvalid, newest(1, api.StatusDeployed, desired)), &Decision{State: StateUnguarded, Step: StepAddFinalizer}},
	})
}

func TestChain_Locked(t *testing.T) {
	unlock := &Decision{State: StateLocked, Step: StepUnlock}
	runCheck(t, "locked", []expect{
		{"no release", guarded(), nil},
		{"deployed", guarded(newest(1, api.StatusDeployed, desired)), nil},
		{"uninstalling", guarded(newest(1, api.StatusUninstalling, desired)), nil},
		{"interrupted install", guarded(newest(1, api.StatusPendingInstall, desired)), unlock},
		{"interrupted upgrade", guarded(newest(2, api.StatusPendingUpgrade, desired)), unlock},
		{"interrupted rollback", guarded(newest(3, api.StatusPendingRollback, desired)), unlock},
		{"another program upgrades", guarded(newest(2, api.StatusPendingUpgrade, ""), byAnotherProgram, began(20*time.Second)), &Decision{State: StateLocked, Step: StepWait, After: 40 * time.Second}},
		{"unlocking failed recently", guarded(newest(2, api.StatusPendingUpgrade, desired), failedTo(ofSpec, 1, 0)), &Decision{State: StateLocked, Step: StepWait, After: time.Second}},
		{"upgrade of another program timed out", guarded(newest(2, api.StatusPendingUpgrade, ""), byAnotherProgram, began(time.Minute)), unlock},
	})
}

func TestChain_Uninstalling(t *testing.T) {
	runCheck(t, "uninstalling", []expect{
		{"no release", guarded(), nil},
		{"deployed", guarded(newest(1, api.StatusDeployed, desired)), nil},
		{"begun", guarded(newest(1, api.StatusUninstalling, desired)), &Decision{State: StateUninstalling, Step: StepUninstall}},
		{"begun, release not owned", guarded(newest(1, api.StatusUninstalling, desired), notOwned), nil},
		{"another program uninstalls", guarded(newest(1, api.StatusUninstalling, ""), byAnotherProgram, began(20*time.Second)), &Decision{State: StateUninstalling, Step: StepWait, After: 40 * time.Second}},
		{"uninstall of another program timed out", guarded(newest(1, api.StatusUninstalling, ""), byAnotherProgram, began(time.Minute)), &Decision{State: StateUninstalling, Step: StepUninstall}},
		{"failed recently", guarded(newest(1, api.StatusUninstalling, desired), failedTo(gone, 3, time.Second)), &Decision{State: StateUninstalling, Step: StepWait, After: 3 * time.Second}},
	})
}

func TestChain_Untidy(t *testing.T) {
	tidy := &Decision{State: StateUntidy, Step: StepTidy}
	deployed := newest(3, api.StatusDeployed, desired)
	runCheck(t, "untidy", []expect{
		{"one is deployed", guarded(deployed), nil},
		{"two are deployed", guarded(deployed, inconsistent), tidy},
		{"two are deployed, neither has the desired digest", guarded(newest(3, api.StatusDeployed, "another"), inconsistent), tidy},
		{"two are deployed, the newest failed", guarded(newest(4, api.StatusFailed, desired), inconsistent), tidy},
		{"two are deployed, the newest by another program", guarded(deployed, byAnotherProgram, inconsistent), tidy},
		{"two are deployed, release not owned", guarded(deployed, notOwned, inconsistent), nil},
		{"two are deployed, uninstall begun", guarded(newest(4, api.StatusUninstalling, desired), inconsistent), nil},
		{"no release", guarded(inconsistent), nil},
		{"failed recently", guarded(deployed, inconsistent, failedTo(ofSpec, 2, 0)), &Decision{State: StateUntidy, Step: StepWait, After: 2 * time.Second}},
		{"failed a while ago", guarded(deployed, inconsistent, failedTo(ofSpec, 2, 2*time.Second)), tidy},
		{"failed recently, retry requested", guarded(deployed, inconsistent, failedTo(ofSpec, 2, 0), retryRequested), tidy},
		{"a repair failed recently", guarded(deployed, inconsistent, repairFailed), tidy},
	})
}

func TestChain_Absent(t *testing.T) {
	install := &Decision{State: StateAbsent, Step: StepInstall}
	runCheck(t, "absent", []expect{
		{"no release", guarded(), install},
		{"uninstalled release", guarded(newest(4, api.StatusUninstalled, "")), install},
		{"deployed", guarded(newest(1, api.StatusDeployed, desired)), nil},
		{"failed", guarded(newest(1, api.StatusFailed, desired)), nil},
		{"failed before a revision was stored", guarded(failedTo(ofSpec, 2, 0)), &Decision{State: StateAbsent, Step: StepWait, After: 2 * time.Second}},
		{"failed with another spec", guarded(failedTo(TargetKey{Goal: GoalSpec, Digest: "another"}, 2, 0)), install},
		{"failed long ago", guarded(failedTo(ofSpec, 2, 2*time.Second)), install},
	})
}

func TestChain_OutOfSync(t *testing.T) {
	upgrade := &Decision{State: StateOutOfSync, Step: StepUpgrade}
	runCheck(t, "outOfSync", []expect{
		{"desired revision is deployed", guarded(newest(3, api.StatusDeployed, desired)), nil},
		{"another revision is deployed", guarded(newest(3, api.StatusDeployed, "another")), upgrade},
		{"upgraded by another program", guarded(newest(3, api.StatusDeployed, ""), byAnotherProgram), upgrade},
		{"upgrade of another program failed", guarded(newest(3, api.StatusFailed, ""), byAnotherProgram), upgrade},
		{"superseded, newer record lost", guarded(newest(3, api.StatusSuperseded, desired)), upgrade},
		{"superseded, newer record lost, upgrade failed recently", guarded(newest(3, api.StatusSuperseded, desired), failedTo(ofSpec, 1, 0)), &Decision{State: StateOutOfSync, Step: StepWait, After: time.Second}},
		{"failed revision of an earlier spec", guarded(newest(2, api.StatusFailed, "another")), upgrade},
		{"another revision is deployed and held", guarded(newest(3, api.StatusDeployed, "another"), heldAt(1)), nil},
		{"another revision is deployed, hold expired", guarded(newest(3, api.StatusDeployed, "another"), heldAt(1), specEdited), upgrade},
	})
}

func TestChain_Due(t *testing.T) {
	every := func(period, ago time.Duration) func(*Observation) {
		return func(o *Observation) { o.Period, o.Applied = period, now.Add(-ago) }
	}
	deployed := newest(1, api.StatusDeployed, desired)
	runCheck(t, "due", []expect{
		{"no period", guarded(deployed, every(0, time.Hour)), nil},
		{"not yet", guarded(deployed, every(time.Minute, time.Minute-1)), nil},
		{"exactly then", guarded(deployed, every(time.Minute, time.Minute)), &Decision{State: StateDue, Step: StepVerify}},
		{"long ago", guarded(deployed, every(time.Minute, time.Hour)), &Decision{State: StateDue, Step: StepVerify}},
		{"failed recently", guarded(deployed, every(time.Minute, time.Hour), repairFailed), &Decision{State: StateDue, Step: StepWait, After: time.Second}},
		{"unverified", guarded(deployed, unverified), &Decision{State: StateDue, Step: StepVerify}},
		{"requested", guarded(deployed, requestsVerification), &Decision{State: StateDue, Step: StepVerify}},
		{"requested, failed recently", guarded(deployed, requestsVerification, repairFailed), &Decision{State: StateDue, Step: StepWait, After: time.Second}},
		{"failed recently, retry requested", guarded(deployed, requestsVerification, repairFailed, retryRequested), &Decision{State: StateDue, Step: StepVerify}},
	})
}

func unverified(o *Observation) { o.Unverified = true }

func inconsistent(o *Observation) { o.Inconsistent = true }

func drifted(o *Observation) { o.Drifted = true }

func repairFailed(o *Observation) {
	o.RepairFailure = &Failure{Target: TargetKey{Goal: GoalCorrected}, Attempts: 1, At: now}
}

func TestChain_Drifted(t *testing.T) {
	deployed := newest(2, api.StatusDeployed, desired)
	repair := &Decision{State: StateDrifted, Step: StepRepair}
	runCheck(t, "drifted", []expect{
		{"no drift", guarded(deployed), nil},
		{"damaged", guarded(deployed, drifted), repair},
		{"drifted, upgrade due", guarded(newest(2, api.StatusDeployed, "another"), drifted), nil},
		{"drifted, due upgrade failed", guarded(newest(2, api.StatusDeployed, "another"), drifted, failedTo(ofSpec, 3, 0)), repair},
		{"drifted, newest revision failed", guarded(newest(2, api.StatusFailed, desired), drifted), nil},
		{"drifted, spec invalid", guarded(newest(2, api.StatusDeployed, "another"), drifted, isInvalid), repair},
		{"drifted, values of a dependency", guarded(newest(2, api.StatusDeployed, "another"), drifted, isInvalid, waits, valuesWait), repair},
		{"drifted and held", guarded(newest(2, api.StatusDeployed, "another"), drifted, heldAt(1)), repair},
		{"drifted, hold expired", guarded(newest(2, api.StatusDeployed, "another"), drifted, heldAt(1), specEdited), nil},
		{"drifted, not owned", guarded(deployed, drifted, notOwned), nil},
		{"drifted, upgraded by another program", guarded(deployed, byAnotherProgram, drifted, isInvalid), nil},
		{"drifted, no release", guarded(drifted, isInvalid), nil},
		{"repair and due upgrade failed recently", guarded(newest(2, api.StatusDeployed, "another"), drifted, failedTo(ofSpec, 3, 0), repairFailed), nil},
		{"repair failed recently", guarded(deployed, drifted, repairFailed), &Decision{State: StateDrifted, Step: StepWait, After: time.Second}},
	})
}

func TestChain_Unverified(t *testing.T) {
	verify := &Decision{State: StateUnverified, Step: StepVerify}
	old := newest(2, api.StatusDeployed, "another")
	repairFailedBefore := func(o *Observation) {
		o.RepairFailure = &Failure{Target: TargetKey{Goal: GoalCorrected}, Attempts: 1, At: now.Add(-time.Second)}
	}
	runCheck(t, "unverified", []expect{
		{"unverified, spec invalid", guarded(old, unverified, isInvalid), verify},
		{"unverified, upgrade failed", guarded(old, unverified, failedTo(ofSpec, 1, 0)), verify},
		{"unverified, upgrade waits for an approval", guarded(old, unverified, failedTo(ofSpec, 1, 0), waitsForApproval), verify},
		{"verification requested, upgrade waits for an approval", guarded(old, func(o *Observation) { o.VerifyRequested = true }, failedTo(ofSpec, 1, 0), waitsForApproval), nil},
		{"unverified, upgrade failed for an earlier spec", guarded(old, unverified, failedTo(TargetKey{Goal: GoalSpec, Digest: "older"}, 1, 0)), nil},
		{"unverified, upgrade due", guarded(old, unverified), nil},
		{"unverified, desired revision deployed", guarded(newest(2, api.StatusDeployed, desired), unverified), nil},
		{"requested, spec invalid", guarded(old, requestsVerification, isInvalid), verify},
		{"requested, upgrade failed", guarded(old, requestsVerification, failedTo(ofSpec, 1, 0)), verify},
		{"requested, upgrade due", guarded(old, requestsVerification), nil},
		{"verified, spec invalid", guarded(old, isInvalid), nil},
		{"verified, upgrade failed", guarded(old, failedTo(ofSpec, 1, 0)), nil},
		{"the newest revision failed", guarded(newest(3, api.StatusFailed, desired), unverified, failedTo(ofSpec, 1, 0)), nil},
		{"upgraded by another program", guarded(old, byAnotherProgram, unverified, isInvalid), nil},
		{"not owned", guarded(old, notOwned, unverified, isInvalid), nil},
		{"no release", guarded(unverified, isInvalid), nil},
		{"failed recently", guarded(old, unverified, isInvalid, repairFailed), nil},
		{"failed a while ago", guarded(old, unverified, isInvalid, repairFailedBefore), verify},
		{"failed recently, retry requested", guarded(old, requestsVerification, isInvalid, repairFailed, retryRequested), verify},
	})
}

// TestObservation_RunsAndStuck: whether the deployed revision can be applied again does
// not depend on whether the release can follow the spec.
func TestObservation_RunsAndStuck(t *testing.T) {
	deployed := newest(2, api.StatusDeployed, "another")
	for _, test := range []struct {
		name        string
		o           Observation
		runs, stuck bool
	}{
		{"deployed", guarded(deployed), true, false},
		{"deployed and drifted", guarded(deployed, drifted), true, false},
		{"deployed, spec invalid", guarded(deployed, isInvalid), true, true},
		{"deployed, upgrade failed long ago", guarded(deployed, failedTo(ofSpec, 1, time.Hour)), true, true},
		{"deployed, upgrade failed for an earlier spec", guarded(deployed, failedTo(TargetKey{Goal: GoalSpec, Digest: "older"}, 1, 0)), true, false},
		{"deployed, retry requested", guarded(deployed, failedTo(ofSpec, 1, 0), retryRequested), true, false},
		{"deployed, repair failed", guarded(deployed, repairFailed), true, false},
		{"deployed, tests could not run", guarded(deployed, failedTo(TargetKey{Goal: GoalTested}, 1, 0)), true, false},
		{"held, rollback failed once", guarded(deployed, heldAt(1), failedTo(TargetKey{Goal: GoalRevision, Revision: 1, Request: "held"}, 1, 0)), true, true},
		{"deployed by another program", guarded(deployed, byAnotherProgram), false, false},
		{"deployed, not owned", guarded(deployed, notOwned), false, false},
		{"failed", guarded(newest(2, api.StatusFailed, desired), failedTo(ofSpec, 1, 0)), false, true},
		{"superseded", guarded(newest(2, api.StatusSuperseded, desired)), false, false},
		{"an upgrade is pending", guarded(newest(2, api.StatusPendingUpgrade, desired)), false, false},
		{"uninstalled", guarded(newest(2, api.StatusUninstalled, desired)), false, false},
		{"no release", guarded(), false, false},
		{"no release, spec invalid", guarded(isInvalid), false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := test.o.runs(); got != test.runs {
				t.Errorf("runs() = %v", got)
			}
			if got := test.o.stuck(); got != test.stuck {
				t.Errorf("stuck() = %v", got)
			}
		})
	}
}

func TestChain_Unmanaged(t *testing.T) {
	adoptable := func(o *Observation) { o.Adoptable, o.Newest.Owned, o.Newest.WrittenByUs = true, false, false }
	runCheck(t, "unmanaged", []expect{
		{"owned", guarded(newest(1, api.StatusDeployed, desired)), nil},
		{"adoptable", guarded(newest(1, api.StatusDeployed, ""), adoptable), &Decision{State: StateUnmanaged, Step: StepAdopt}},
		{"adoptable, uninstalled", guarded(newest(1, api.StatusUninstalled, ""), adoptable), nil},
		{"adoptable, adoption failed recently", guarded(newest(1, api.StatusDeployed, ""), adoptable, failedTo(ofSpec, 1, 0)), &Decision{State: StateUnmanaged, Step: StepWait, After: time.Second}},
		{"owned, upgraded by another program", guarded(newest(2, api.StatusDeployed, ""), byAnotherProgram), &Decision{State: StateUnmanaged, Step: StepUpgrade}},
	})
}

func TestChain_Untested(t *testing.T) {
	deployed := newest(1, api.StatusDeployed, desired)
	runCheck(t, "untested", []expect{
		{"not requested", guarded(deployed), nil},
		{"requested", guarded(deployed, requestsTests), &Decision{State: StateUntested, Step: StepTest}},
		{"could not run recently", guarded(deployed, requestsTests, failedTo(TargetKey{Goal: GoalTested}, 2, 0)), &Decision{State: StateUntested, Step: StepWait, After: 2 * time.Second}},
	})
}

func TestChain_Unrecorded(t *testing.T) {
	deployed := newest(1, api.StatusDeployed, desired)
	finished := func(o *Observation) { o.Unrecorded = true }
	runCheck(t, "unrecorded", []expect{
		{"recorded", guarded(deployed), nil},
		{"not recorded", guarded(deployed, finished), &Decision{State: StateUnrecorded, Step: StepRecord}},
		{"not recorded, write failed recently", guarded(deployed, finished, failedTo(TargetKey{Goal: GoalRecorded}, 1, 0)), &Decision{State: StateUnrecorded, Step: StepWait, After: time.Second}},
		{"not recorded, upgraded by another program", guarded(newest(2, api.StatusDeployed, ""), byAnotherProgram, finished), nil},
	})
}

func hasNoAccount(o *Observation) {
	isInvalid(o)
	o.AccountUnknown = true
}
