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

// guarded returns a custom resource with our finalizer and no release, changed
// in turn.
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

// byOthers makes the newest revision one that the helm CLI wrote.
func byOthers(o *Observation) { o.Newest.WrittenByUs, o.Newest.Digest = false, "" }

// isStripped: its record has lost its annotations.
func isStripped(o *Observation) { o.Newest.Stripped = true }

// began is how long ago the newest revision's action began; its time is a
// minute.
func began(ago time.Duration) func(*Observation) {
	return func(o *Observation) { o.Newest.Began = now.Add(-ago) }
}

func ofAnother(o *Observation) { o.Newest.Owned = false }

func beingDeleted(o *Observation) { o.Deleting = true }

func isPaused(o *Observation) { o.Paused = true }

func asksToVerify(o *Observation) { o.VerifyRequested = true }

func asksForTests(o *Observation) { o.TestRequested = true }

func noFinalizer(o *Observation) { o.Finalizer = false }

// formerFinalizer: the operator-sdk's is there, whether ours is or not.
func formerFinalizer(o *Observation) { o.Former = true }

func running(step Step) func(*Observation) {
	return func(o *Observation) { o.Running = &Running{Step: step, Since: now} }
}

// failedTo is a failure so long ago.
func failedTo(target TargetKey, attempts int, ago time.Duration) func(*Observation) {
	return func(o *Observation) { o.Failure = &Failure{Target: target, Attempts: attempts, At: now.Add(-ago)} }
}

// expect runs one check.
type expect struct {
	name string
	o    Observation
	// want is nil where the check does not apply.
	want *Decision
}

// runCheck runs the check of that name alone.
func runCheck(t *testing.T, name string, tests []expect) {
	t.Helper()
	i := slices.IndexFunc(chain, func(c check) bool { return c.name == name })
	if i < 0 {
		t.Fatalf("no check is named %s", name)
	}
	look := chain[i]
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			applies := look.applies(test.o)
			if applies != (test.want != nil) {
				t.Fatalf("applies: %v, want %v", applies, test.want != nil)
			}
			if applies {
				got := look.decide(test.o)
				got.State = cmp.Or(got.State, look.state)
				if diff := gocmp.Diff(*test.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestBusy(t *testing.T) {
	runCheck(t, "busy", []expect{
		{"nothing runs", guarded(), nil},
		{"an action runs", guarded(running(StepInstall)), &Decision{State: StateBusy, Step: StepWait}},
		{"an action runs and the resource goes", guarded(running(StepUpgrade), beingDeleted), &Decision{State: StateBusy, Step: StepWait}},
	})
}

func TestPaused(t *testing.T) {
	runCheck(t, "paused", []expect{
		{"nobody has paused it", guarded(), nil},
		{"somebody has", guarded(isPaused), &Decision{State: StatePaused, Step: StepWait}},
		{"somebody has, and a release is there", guarded(isPaused, newest(1, api.StatusDeployed, "another")), &Decision{State: StatePaused, Step: StepWait}},
	})
}

func TestConflict(t *testing.T) {
	runCheck(t, "conflict", []expect{
		{"a name is free", guarded(), nil},
		{"none is", guarded(func(o *Observation) { o.Conflict = true }), &Decision{State: StateConflict, Step: StepWait, After: maxBackoff}},
	})
}

func TestInvalid(t *testing.T) {
	runCheck(t, "invalid", []expect{
		{"values", guarded(), nil},
		{"no values", guarded(isInvalid), &Decision{State: StateInvalid, Step: StepWait}},
		{"no values, and an earlier revision is held", guarded(isInvalid, newest(4, api.StatusDeployed, "another"), heldAt(2)), nil},
		{"no values, and a hold that is over", guarded(isInvalid, newest(4, api.StatusDeployed, "another"), heldAt(2), specEdited), &Decision{State: StateInvalid, Step: StepWait}},
	})
}

func TestUnguarded(t *testing.T) {
	runCheck(t, "unguarded", []expect{
		{"with the finalizer", guarded(), nil},
		{"without", guarded(noFinalizer), &Decision{State: StateUnguarded, Step: StepAddFinalizer}},
		{"with the operator-sdk's", guarded(noFinalizer, formerFinalizer), &Decision{State: StateUnguarded, Step: StepAddFinalizer}},
		{"with the operator-sdk's beside it", guarded(formerFinalizer), &Decision{State: StateUnguarded, Step: StepAddFinalizer}},
		{"with the operator-sdk's, and nothing can be installed", guarded(noFinalizer, formerFinalizer, isInvalid), nil},
		{"without, and nothing can be installed", guarded(noFinalizer, isInvalid), nil},
		{"without, and something is installed", guarded(noFinalizer, isInvalid, newest(1, api.StatusDeployed, desired)), &Decision{State: StateUnguarded, Step: StepAddFinalizer}},
	})
}

func TestLocked(t *testing.T) {
	unlock := &Decision{State: StateLocked, Step: StepUnlock}
	runCheck(t, "locked", []expect{
		{"no release", guarded(), nil},
		{"deployed", guarded(newest(1, api.StatusDeployed, desired)), nil},
		{"uninstalling", guarded(newest(1, api.StatusUninstalling, desired)), nil},
		{"our install was cut short", guarded(newest(1, api.StatusPendingInstall, desired)), unlock},
		{"our upgrade was cut short", guarded(newest(2, api.StatusPendingUpgrade, desired)), unlock},
		{"our rollback was cut short", guarded(newest(3, api.StatusPendingRollback, desired)), unlock},
		{"somebody upgrades", guarded(newest(2, api.StatusPendingUpgrade, ""), byOthers, began(20*time.Second)), &Decision{State: StateLocked, Step: StepWait, After: 40 * time.Second}},
		{"unlocking failed just now", guarded(newest(2, api.StatusPendingUpgrade, desired), failedTo(ofSpec, 1, 0)), &Decision{State: StateLocked, Step: StepWait, After: time.Second}},
		{"somebody's upgrade has passed its time", guarded(newest(2, api.StatusPendingUpgrade, ""), byOthers, began(time.Minute)), unlock},
	})
}

func TestUninstalling(t *testing.T) {
	runCheck(t, "uninstalling", []expect{
		{"no release", guarded(), nil},
		{"deployed", guarded(newest(1, api.StatusDeployed, desired)), nil},
		{"begun", guarded(newest(1, api.StatusUninstalling, desired)), &Decision{State: StateUninstalling, Step: StepUninstall}},
		{"begun, of another's release", guarded(newest(1, api.StatusUninstalling, desired), ofAnother), nil},
		{"somebody uninstalls it", guarded(newest(1, api.StatusUninstalling, ""), byOthers, began(20*time.Second)), &Decision{State: StateUninstalling, Step: StepWait, After: 40 * time.Second}},
		{"somebody's uninstall has passed its time", guarded(newest(1, api.StatusUninstalling, ""), byOthers, began(time.Minute)), &Decision{State: StateUninstalling, Step: StepUninstall}},
		{"failed just now", guarded(newest(1, api.StatusUninstalling, desired), failedTo(gone, 3, time.Second)), &Decision{State: StateUninstalling, Step: StepWait, After: 3 * time.Second}},
	})
}

func TestAmbiguous(t *testing.T) {
	supersede := &Decision{State: StateUntidy, Step: StepTidy}
	deployed := newest(3, api.StatusDeployed, desired)
	runCheck(t, "untidy", []expect{
		{"one is deployed", guarded(deployed), nil},
		{"two are", guarded(deployed, twoDeployed), supersede},
		{"two are, of which none is what is desired", guarded(newest(3, api.StatusDeployed, "another"), twoDeployed), supersede},
		{"two are, below one that failed", guarded(newest(4, api.StatusFailed, desired), twoDeployed), supersede},
		{"two are, and the newest is somebody else's", guarded(deployed, byOthers, twoDeployed), supersede},
		{"two are, of another's release", guarded(deployed, ofAnother, twoDeployed), nil},
		{"two are, below an uninstall that has begun", guarded(newest(4, api.StatusUninstalling, desired), twoDeployed), nil},
		{"no release", guarded(twoDeployed), nil},
		{"it failed just now", guarded(deployed, twoDeployed, failedTo(ofSpec, 2, 0)), &Decision{State: StateUntidy, Step: StepWait, After: 2 * time.Second}},
		{"it failed a while ago", guarded(deployed, twoDeployed, failedTo(ofSpec, 2, 2*time.Second)), supersede},
		{"it failed just now, and a person says try again", guarded(deployed, twoDeployed, failedTo(ofSpec, 2, 0), nudged), supersede},
		{"a repair failed just now", guarded(deployed, twoDeployed, repairFailed), supersede},
	})
}

func TestAbsent(t *testing.T) {
	install := &Decision{State: StateAbsent, Step: StepInstall}
	runCheck(t, "absent", []expect{
		{"no release", guarded(), install},
		{"the record of an uninstalled one", guarded(newest(4, api.StatusUninstalled, "")), install},
		{"deployed", guarded(newest(1, api.StatusDeployed, desired)), nil},
		{"failed", guarded(newest(1, api.StatusFailed, desired)), nil},
		{"failed before anything was stored", guarded(failedTo(ofSpec, 2, 0)), &Decision{State: StateAbsent, Step: StepWait, After: 2 * time.Second}},
		{"that was for another spec", guarded(failedTo(TargetKey{Goal: GoalSpec, Digest: "another"}, 2, 0)), install},
		{"that was long ago", guarded(failedTo(ofSpec, 2, 2*time.Second)), install},
	})
}

func TestOutOfSync(t *testing.T) {
	upgrade := &Decision{State: StateOutOfSync, Step: StepUpgrade}
	runCheck(t, "outOfSync", []expect{
		{"what is desired is deployed", guarded(newest(3, api.StatusDeployed, desired)), nil},
		{"something else is", guarded(newest(3, api.StatusDeployed, "another")), upgrade},
		{"somebody upgraded it", guarded(newest(3, api.StatusDeployed, ""), byOthers), upgrade},
		{"somebody's upgrade failed", guarded(newest(3, api.StatusFailed, ""), byOthers), upgrade},
		{"it is superseded, and what superseded it is lost", guarded(newest(3, api.StatusSuperseded, desired)), upgrade},
		{"so, and the upgrade failed just now", guarded(newest(3, api.StatusSuperseded, desired), failedTo(ofSpec, 1, 0)), &Decision{State: StateOutOfSync, Step: StepWait, After: time.Second}},
		{"the failed revision of a former spec", guarded(newest(2, api.StatusFailed, "another")), upgrade},
		{"something else is, and is held", guarded(newest(3, api.StatusDeployed, "another"), heldAt(1)), nil},
		{"something else is, and the hold is over", guarded(newest(3, api.StatusDeployed, "another"), heldAt(1), specEdited), upgrade},
	})
}

func TestDue(t *testing.T) {
	every := func(period, ago time.Duration) func(*Observation) {
		return func(o *Observation) { o.Period, o.Applied = period, now.Add(-ago) }
	}
	deployed := newest(1, api.StatusDeployed, desired)
	runCheck(t, "due", []expect{
		{"no period", guarded(deployed, every(0, time.Hour)), nil},
		{"not yet", guarded(deployed, every(time.Minute, time.Minute-1)), nil},
		{"on the point", guarded(deployed, every(time.Minute, time.Minute)), &Decision{State: StateDue, Step: StepVerify}},
		{"long ago", guarded(deployed, every(time.Minute, time.Hour)), &Decision{State: StateDue, Step: StepVerify}},
		{"failed just now", guarded(deployed, every(time.Minute, time.Hour), repairFailed), &Decision{State: StateDue, Step: StepWait, After: time.Second}},
		{"nothing is known", guarded(deployed, unknown), &Decision{State: StateDue, Step: StepVerify}},
		{"a person asks for it", guarded(deployed, asksToVerify), &Decision{State: StateDue, Step: StepVerify}},
		{"a person asks for it, and it failed just now", guarded(deployed, asksToVerify, repairFailed), &Decision{State: StateDue, Step: StepWait, After: time.Second}},
		{"it failed just now, and a person asks again", guarded(deployed, asksToVerify, repairFailed, nudged), &Decision{State: StateDue, Step: StepVerify}},
	})
}

func unknown(o *Observation) { o.Unverified = true }

func twoDeployed(o *Observation) { o.Inconsistent = true }

func damaged(o *Observation) { o.Drifted = true }

func repairFailed(o *Observation) {
	o.RepairFailure = &Failure{Target: TargetKey{Goal: GoalCorrected}, Attempts: 1, At: now}
}

func TestDrifted(t *testing.T) {
	deployed := newest(2, api.StatusDeployed, desired)
	repair := &Decision{State: StateDrifted, Step: StepRepair}
	runCheck(t, "drifted", []expect{
		{"undamaged", guarded(deployed), nil},
		{"damaged", guarded(deployed, damaged), repair},
		{"damaged, and an upgrade is due", guarded(newest(2, api.StatusDeployed, "another"), damaged), nil},
		{"damaged, and the upgrade that is due failed", guarded(newest(2, api.StatusDeployed, "another"), damaged, failedTo(ofSpec, 3, 0)), repair},
		{"damaged by a revision that failed", guarded(newest(2, api.StatusFailed, desired), damaged), nil},
		{"damaged, and the spec cannot be used", guarded(newest(2, api.StatusDeployed, "another"), damaged, isInvalid), repair},
		{"damaged, and held", guarded(newest(2, api.StatusDeployed, "another"), damaged, heldAt(1)), repair},
		{"damaged, and the hold is over", guarded(newest(2, api.StatusDeployed, "another"), damaged, heldAt(1), specEdited), nil},
		{"damaged, and another's", guarded(deployed, damaged, ofAnother), nil},
		{"damaged, and somebody else has upgraded it", guarded(deployed, byOthers, damaged, isInvalid), nil},
		{"damaged, and nothing runs", guarded(damaged, isInvalid), nil},
		{"the repair failed just now, and so did the upgrade that is due", guarded(newest(2, api.StatusDeployed, "another"), damaged, failedTo(ofSpec, 3, 0), repairFailed), nil},
		{"the repair failed just now", guarded(deployed, damaged, repairFailed), &Decision{State: StateDrifted, Step: StepWait, After: time.Second}},
	})
}

func TestUnverified(t *testing.T) {
	verify := &Decision{State: StateUnverified, Step: StepVerify}
	old := newest(2, api.StatusDeployed, "another")
	repairFailedBefore := func(o *Observation) {
		o.RepairFailure = &Failure{Target: TargetKey{Goal: GoalCorrected}, Attempts: 1, At: now.Add(-time.Second)}
	}
	runCheck(t, "unverified", []expect{
		{"nothing is known, and the spec cannot be used", guarded(old, unknown, isInvalid), verify},
		{"nothing is known, and the upgrade failed", guarded(old, unknown, failedTo(ofSpec, 1, 0)), verify},
		{"nothing is known, and the upgrade failed for a former spec", guarded(old, unknown, failedTo(TargetKey{Goal: GoalSpec, Digest: "older"}, 1, 0)), nil},
		{"nothing is known, and an upgrade is due", guarded(old, unknown), nil},
		{"nothing is known, and what is desired is deployed", guarded(newest(2, api.StatusDeployed, desired), unknown), nil},
		{"a person asks, and the spec cannot be used", guarded(old, asksToVerify, isInvalid), verify},
		{"a person asks, and the upgrade failed", guarded(old, asksToVerify, failedTo(ofSpec, 1, 0)), verify},
		{"a person asks, and an upgrade is due", guarded(old, asksToVerify), nil},
		{"all is known, and the spec cannot be used", guarded(old, isInvalid), nil},
		{"all is known, and the upgrade failed", guarded(old, failedTo(ofSpec, 1, 0)), nil},
		{"what runs is below a revision that failed", guarded(newest(3, api.StatusFailed, desired), unknown, failedTo(ofSpec, 1, 0)), nil},
		{"what runs is somebody else's upgrade", guarded(old, byOthers, unknown, isInvalid), nil},
		{"what runs is another's", guarded(old, ofAnother, unknown, isInvalid), nil},
		{"nothing runs", guarded(unknown, isInvalid), nil},
		{"it failed just now", guarded(old, unknown, isInvalid, repairFailed), nil},
		{"it failed a while ago", guarded(old, unknown, isInvalid, repairFailedBefore), verify},
		{"it failed just now, and a person says try again", guarded(old, asksToVerify, isInvalid, repairFailed, nudged), verify},
	})
}

// TestRunsAndStuck: what can be verified is one thing, and whether the spec can
// be followed instead is another.
func TestRunsAndStuck(t *testing.T) {
	deployed := newest(2, api.StatusDeployed, "another")
	for _, test := range []struct {
		name        string
		o           Observation
		runs, stuck bool
	}{
		{"deployed", guarded(deployed), true, false},
		{"deployed, and it was damaged", guarded(deployed, damaged), true, false},
		{"deployed, and the spec cannot be used", guarded(deployed, isInvalid), true, true},
		{"deployed, and the upgrade failed long ago", guarded(deployed, failedTo(ofSpec, 1, time.Hour)), true, true},
		{"deployed, and the upgrade failed for a former spec", guarded(deployed, failedTo(TargetKey{Goal: GoalSpec, Digest: "older"}, 1, 0)), true, false},
		{"deployed, and a person says try again", guarded(deployed, failedTo(ofSpec, 1, 0), nudged), true, false},
		{"deployed, and a repair failed", guarded(deployed, repairFailed), true, false},
		{"deployed, and the tests could not be run", guarded(deployed, failedTo(TargetKey{Goal: GoalTested}, 1, 0)), true, false},
		{"held, and the rollback to it failed once", guarded(deployed, heldAt(1), failedTo(TargetKey{Goal: GoalRevision, Revision: 1, Request: "held"}, 1, 0)), true, true},
		{"deployed by somebody else", guarded(deployed, byOthers), false, false},
		{"deployed by another", guarded(deployed, ofAnother), false, false},
		{"failed", guarded(newest(2, api.StatusFailed, desired), failedTo(ofSpec, 1, 0)), false, true},
		{"superseded", guarded(newest(2, api.StatusSuperseded, desired)), false, false},
		{"an upgrade is pending", guarded(newest(2, api.StatusPendingUpgrade, desired)), false, false},
		{"uninstalled", guarded(newest(2, api.StatusUninstalled, desired)), false, false},
		{"no release", guarded(), false, false},
		{"no release, and the spec cannot be used", guarded(isInvalid), false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := test.o.runs(); got != test.runs {
				t.Errorf("it runs: %v", got)
			}
			if got := test.o.stuck(); got != test.stuck {
				t.Errorf("it is stuck: %v", got)
			}
		})
	}
}

func TestUnmanaged(t *testing.T) {
	adoptable := func(o *Observation) { o.Adoptable, o.Newest.Owned, o.Newest.WrittenByUs = true, false, false }
	runCheck(t, "unmanaged", []expect{
		{"ours", guarded(newest(1, api.StatusDeployed, desired)), nil},
		{"somebody's", guarded(newest(1, api.StatusDeployed, ""), adoptable), &Decision{State: StateUnmanaged, Step: StepAdopt}},
		{"somebody's, uninstalled", guarded(newest(1, api.StatusUninstalled, ""), adoptable), nil},
		{"somebody's, and taking it over failed just now", guarded(newest(1, api.StatusDeployed, ""), adoptable, failedTo(ofSpec, 1, 0)), &Decision{State: StateUnmanaged, Step: StepWait, After: time.Second}},
		{"ours, and somebody upgraded it", guarded(newest(2, api.StatusDeployed, ""), byOthers), &Decision{State: StateUnmanaged, Step: StepUpgrade}},
	})
}

func TestUntested(t *testing.T) {
	deployed := newest(1, api.StatusDeployed, desired)
	runCheck(t, "untested", []expect{
		{"nobody asks", guarded(deployed), nil},
		{"a person asks", guarded(deployed, asksForTests), &Decision{State: StateUntested, Step: StepTest}},
		{"they could not be run just now", guarded(deployed, asksForTests, failedTo(TargetKey{Goal: GoalTested}, 2, 0)), &Decision{State: StateUntested, Step: StepWait, After: 2 * time.Second}},
	})
}

func TestUnrecorded(t *testing.T) {
	deployed := newest(1, api.StatusDeployed, desired)
	finished := func(o *Observation) { o.Unrecorded = true }
	runCheck(t, "unrecorded", []expect{
		{"the record says what has finished", guarded(deployed), nil},
		{"a Job has finished", guarded(deployed, finished), &Decision{State: StateUnrecorded, Step: StepRecord}},
		{"a Job has finished, and the record could not be written just now", guarded(deployed, finished, failedTo(TargetKey{Goal: GoalRecorded}, 1, 0)), &Decision{State: StateUnrecorded, Step: StepWait, After: time.Second}},
		{"a Job has finished, and somebody upgraded the release", guarded(newest(2, api.StatusDeployed, ""), byOthers, finished), nil},
	})
}

func TestInSync(t *testing.T) {
	deployed := newest(1, api.StatusDeployed, desired)
	runCheck(t, "inSync", []expect{
		{"deployed", guarded(deployed), &Decision{State: StateInSync, Step: StepWait}},
		{"until the period ends", guarded(deployed, func(o *Observation) { o.Period, o.Applied = time.Minute, now.Add(-20*time.Second) }), &Decision{State: StateInSync, Step: StepWait, After: 40 * time.Second}},
	})
}
