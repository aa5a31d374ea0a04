package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright/internal/api"
)

// goesBack is a kind whose upgrades are rolled back after so many failures.
func goesBack(retries int) func(*Observation) {
	return func(o *Observation) { o.Retries, o.LastGood = retries, 2 }
}

func TestFailed(t *testing.T) {
	upgrade := &Decision{State: StateFailed, Step: StepUpgrade}
	wait := func(after time.Duration) *Decision {
		return &Decision{State: StateFailed, Step: StepWait, After: after}
	}
	third := newest(3, api.StatusFailed, desired)
	runCheck(t, "failed", []expect{
		{"deployed", guarded(newest(1, api.StatusDeployed, desired)), nil},
		{"the first install", guarded(newest(1, api.StatusFailed, desired)), &Decision{State: StateFailed, Step: StepInstall}},
		{"an upgrade", guarded(newest(2, api.StatusFailed, desired)), upgrade},
		{"an upgrade just now", guarded(newest(2, api.StatusFailed, desired), failedTo(ofSpec, 4, 0)), wait(8 * time.Second)},
		{"an upgrade just now, and a person says try again", guarded(newest(2, api.StatusFailed, desired), failedTo(ofSpec, 4, 0), nudged), upgrade},
		{"of another spec", guarded(newest(2, api.StatusFailed, "another"), failedTo(TargetKey{Goal: GoalSpec, Digest: "another"}, 4, 0)), nil},
		{"the first install, of another spec", guarded(newest(1, api.StatusFailed, "another")), nil},
		{"before anything was stored", guarded(newest(2, api.StatusDeployed, "another"), failedTo(ofSpec, 1, 0)), wait(time.Second)},
		{"before anything was stored, long ago", guarded(newest(2, api.StatusDeployed, "another"), failedTo(ofSpec, 1, time.Hour)), upgrade},
		{"of somebody else", guarded(newest(2, api.StatusFailed, ""), byOthers), nil},
		{"a rollback", guarded(newest(4, api.StatusFailed, desired), heldAt(2)), nil},
	})
	runCheck(t, "failed", []expect{
		{"too often", guarded(third, goesBack(3), failedTo(ofSpec, 3, 0)), &Decision{State: StateFailed, Step: StepRollback, Revision: 2}},
		{"not often enough", guarded(third, goesBack(3), failedTo(ofSpec, 2, 0)), wait(2 * time.Second)},
		{"too often, and the rollback then", guarded(third, goesBack(3), failedTo(ofSpec, 4, 0)), &Decision{State: StateFailed, Step: StepWait, After: 8 * time.Second, Revision: 2}},
		{"too often, and the rollback then, a while ago", guarded(third, goesBack(3), failedTo(ofSpec, 4, 8*time.Second)), &Decision{State: StateFailed, Step: StepRollback, Revision: 2}},
		{"too often, with nothing to go back to", guarded(third, goesBack(3), func(o *Observation) { o.LastGood = 0 }, failedTo(ofSpec, 3, 0)), wait(4 * time.Second)},
		{"too often, of a kind that goes on trying", guarded(third, goesBack(0), failedTo(ofSpec, 9, 0)), wait(256 * time.Second)},
		{"too often, in an earlier process", guarded(third, goesBack(3)), upgrade},
		{"too often, for an earlier spec", guarded(third, goesBack(3), failedTo(TargetKey{Goal: GoalSpec, Digest: "another"}, 9, 0)), upgrade},
		{"too often, and a person says try again", guarded(third, goesBack(3), failedTo(ofSpec, 3, 0), nudged), upgrade},
		{"too often before anything was stored, so that nothing has to go back", guarded(newest(3, api.StatusDeployed, "another"), goesBack(3), failedTo(ofSpec, 3, 0)), wait(4 * time.Second)},
		{"the first install, too often", guarded(newest(1, api.StatusFailed, desired), goesBack(3), failedTo(ofSpec, 3, 0)), wait(4 * time.Second)},
	})
}

// Targets as failures remember them.
var (
	ofSpec    = TargetKey{Goal: GoalSpec, Digest: desired}
	gone      = TargetKey{Goal: GoalGone}
	requested = TargetKey{Goal: GoalRevision, Revision: 2, Request: "asked"}
	held      = TargetKey{Goal: GoalRevision, Revision: 2, Request: "held"}
)

// again is a target after a request for another try.
func (k TargetKey) again() TargetKey { k.RetryToken = "again"; return k }

func TestTarget(t *testing.T) {
	deployed := newest(3, api.StatusDeployed, "another")
	first := held
	first.Revision = 1
	expired := requested
	expired.Expired = true
	for _, test := range []struct {
		name string
		o    Observation
		want TargetKey
	}{
		{"the spec", guarded(deployed), ofSpec},
		{"the spec, once more", guarded(deployed, nudged), ofSpec.again()},
		{"that it is gone", guarded(deployed, asks(2), heldAt(1), beingDeleted), gone},
		{"that it is gone, once more", guarded(deployed, nudged, beingDeleted), gone.again()},
		{"a revision", guarded(deployed, asks(2), heldAt(1)), requested},
		{"a revision, once more", guarded(deployed, asks(2), nudged), requested.again()},
		{"a revision, after an edit", guarded(deployed, asks(2), inVain), expired},
		{"a revision of no release", guarded(asks(2)), ofSpec},
		{"to stay", guarded(deployed, heldAt(1)), first},
		{"to stay, once more", guarded(deployed, heldAt(1), nudged), first.again()},
		{"to stay after a failure", guarded(deployed, heldAt(1), byFailure), ofSpec},
		{"the spec, after a hold", guarded(deployed, heldAt(1), specEdited), ofSpec},
		{"the spec, where nothing is left to hold", guarded(newest(3, api.StatusUninstalled, ""), heldAt(1)), ofSpec},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := Target(test.o); got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}

// TestReached: a failure is history where what it aimed for is there all the
// same, and nothing else was asked for since.
func TestReached(t *testing.T) {
	deployed := newest(3, api.StatusDeployed, desired)
	old := newest(3, api.StatusDeployed, "another")
	for _, test := range []struct {
		name string
		o    Observation
		want bool
	}{
		{"what is desired is deployed", guarded(deployed), true},
		{"what is desired is deployed, and damaged", guarded(deployed, damaged), true},
		{"what is desired is deployed, and it goes", guarded(deployed, beingDeleted), false},
		{"what is desired is deployed, and an action runs", guarded(deployed, running(StepVerify)), false},
		{"what is desired is deployed, and a person asks for another", guarded(deployed, asks(1)), false},
		{"what is desired is deployed, and a hold is over", guarded(deployed, heldAt(1), specEdited), false},
		{"what is desired is deployed, and so is another", guarded(deployed, twoDeployed), false},
		{"what is desired is deployed by another", guarded(deployed, ofAnother), false},
		{"what is desired has failed", guarded(newest(3, api.StatusFailed, desired)), false},
		{"what is desired is pending", guarded(newest(3, api.StatusPendingUpgrade, desired)), false},
		{"what is desired is superseded", guarded(newest(3, api.StatusSuperseded, desired)), false},
		{"something else is deployed", guarded(old), false},
		{"something else is deployed, and held", guarded(old, heldAt(1)), true},
		{"something else is deployed, and held by failure", guarded(old, heldAt(1), byFailure), true},
		{"something else is deployed, and the hold is over", guarded(old, heldAt(1), specEdited), false},
		{"what was held failed to come back", guarded(newest(3, api.StatusFailed, "another"), heldAt(1)), false},
		{"somebody has upgraded what was held", guarded(old, byOthers, heldAt(1)), false},
		{"no release", guarded(), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := Reached(test.o); got != test.want {
				t.Errorf("reached: %v, want %v", got, test.want)
			}
		})
	}
}

// TestTargetOf: what concerns different things fails apart from each other.
func TestTargetOf(t *testing.T) {
	o := guarded(newest(3, api.StatusDeployed, "another"), nudged)
	corrected, tested := TargetKey{Goal: GoalCorrected}, TargetKey{Goal: GoalTested}
	for step, want := range map[Step]TargetKey{
		StepInstall: ofSpec, StepUpgrade: ofSpec, StepUnlock: ofSpec, StepTidy: ofSpec, StepAdopt: ofSpec,
		StepUninstall: gone, StepTest: tested, StepRepair: corrected, StepVerify: corrected,
	} {
		if got := TargetOf(step, o); got != want.again() {
			t.Errorf("%s: %+v, want %+v", step, got, want.again())
		}
	}
	beingDeleted(&o)
	if got := TargetOf(StepOrphan, o); got != gone.again() {
		t.Errorf("%s: %+v", StepOrphan, got)
	}
}

// TestRollsBack: the remediation policy, by where the last try has failed.
func TestRollsBack(t *testing.T) {
	failedTwice := guarded(newest(3, api.StatusFailed, desired), failedTo(ofSpec, 2, 0))
	for _, test := range []struct {
		name     string
		at       failedAt
		retries  int
		lastGood int
		number   int
		attempts int
		want     bool
	}{
		{"fewer failures than retries", stored, 3, 2, 3, 2, false},
		{"as many failures as retries", stored, 2, 2, 3, 2, true},
		{"more failures than retries", stored, 1, 2, 3, 2, true},
		{"a kind without retries", stored, 0, 2, 3, 9, false},
		{"no good revision", stored, 1, 0, 3, 2, false},
		{"the first revision", stored, 1, 2, 1, 2, false},
		{"nothing stored", unstored, 1, 2, 3, 9, false},
		{"overdue objects", overdue, 3, 2, 3, 0, true},
		{"overdue objects of a kind without retries", overdue, 0, 2, 3, 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := failedTwice
			newest, failure := *o.Newest, *o.Failure
			newest.Number, failure.Attempts = test.number, test.attempts
			o.Newest, o.Failure, o.Retries, o.LastGood = &newest, &failure, test.retries, test.lastGood
			if got := rollsBack(o, test.at); got != test.want {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}

// TestKindsOfSteps: a pause that keeps a step from being done is worth telling
// where it is one that changes what runs.
func TestKindsOfSteps(t *testing.T) {
	for _, test := range []struct {
		step             Step
		changes, repairs bool
	}{
		{StepInstall, true, false},
		{StepUpgrade, true, false},
		{StepRollback, true, false},
		{StepUninstall, true, false},
		{StepOrphan, true, false},
		{StepAdopt, true, false},
		{StepUnlock, true, false},
		{StepRepair, false, true},
		{StepVerify, false, true},
		{StepTidy, false, false},
		{StepResume, false, false},
		{StepRefuse, false, false},
		{StepTest, false, false},
		{StepAddFinalizer, false, false},
		{StepRemoveFinalizer, false, false},
		{StepWait, false, false},
	} {
		if got := Changes(test.step); got != test.changes {
			t.Errorf("%s changes: %v", test.step, got)
		}
		if got := Repairs(test.step); got != test.repairs {
			t.Errorf("%s repairs: %v", test.step, got)
		}
	}
}

func TestBackoff(t *testing.T) {
	for attempts, want := range map[int]time.Duration{
		0: time.Second, 1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 9: 256 * time.Second,
		10: 5 * time.Minute, 11: 5 * time.Minute, 1000: 5 * time.Minute, 1 << 40: 5 * time.Minute,
	} {
		if got := backoff(attempts); got != want {
			t.Errorf("after %d failures %s, want %s", attempts, got, want)
		}
	}
}

// TestRetry_Limit: what authors of custom resources can cause waits until the
// next action may begin, and nothing else does.
func TestRetry_Limit(t *testing.T) {
	limited := func(o *Observation) { o.Earliest = now.Add(4 * time.Second) }
	over := func(o *Observation) { o.Earliest = now }
	overdue := func(o *Observation) { o.Period, o.Applied = time.Minute, now.Add(-time.Hour) }
	deployed, old := newest(1, api.StatusDeployed, desired), newest(1, api.StatusDeployed, "another")
	wait := func(state State) Decision {
		return Decision{State: state, Step: StepWait, After: 4 * time.Second, Throttled: true}
	}
	for _, test := range []struct {
		name string
		o    Observation
		want Decision
	}{
		{"an edit", guarded(old, limited), wait(StateOutOfSync)},
		{"an edit when the time has come", guarded(old, over), Decision{State: StateOutOfSync, Step: StepUpgrade}},
		{"an edit that failed", guarded(old, failedTo(ofSpec, 1, time.Minute), limited), wait(StateFailed)},
		{"an edit that failed just now", guarded(old, failedTo(ofSpec, 1, 0), limited), Decision{State: StateFailed, Step: StepWait, After: 4 * time.Second}},
		{"an edit that failed often", guarded(old, failedTo(ofSpec, 5, 0), limited), Decision{State: StateFailed, Step: StepWait, After: 16 * time.Second}},
		{"an install", guarded(limited), wait(StateAbsent)},
		{"a request for tests", guarded(deployed, asksForTests, limited), wait(StateUntested)},
		{"a request for a rollback", guarded(old, asks(1), limited), Decision{State: StateRollbackRequested, Step: StepWait, Revision: 1, After: 4 * time.Second, Throttled: true}},
		{"a request to verify", guarded(deployed, asksToVerify, limited), wait(StateDue)},
		{"the period", guarded(deployed, overdue, limited), Decision{State: StateDue, Step: StepVerify}},
		{"drift", guarded(deployed, damaged, limited), Decision{State: StateDrifted, Step: StepRepair}},
		{"drift while an edit waits", guarded(old, damaged, limited), Decision{State: StateDrifted, Step: StepRepair}},
		{"drift while a rollback waits", guarded(old, damaged, asks(1), limited), Decision{State: StateDrifted, Step: StepRepair}},
		{"a deletion", guarded(deployed, beingDeleted, limited), Decision{State: StateDeleting, Step: StepUninstall}},
		{"an interrupted upgrade", guarded(newest(2, api.StatusPendingUpgrade, desired), limited), Decision{State: StateLocked, Step: StepUnlock}},
		{"in sync", guarded(deployed, limited), Decision{State: StateInSync, Step: StepWait}},
		{"a pause", guarded(old, isPaused, limited), Decision{State: StatePaused, Step: StepWait, Pending: Pending{StateOutOfSync, StepUpgrade}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Next(test.o)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
