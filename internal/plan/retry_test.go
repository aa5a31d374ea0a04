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
	runCheck(t, failed, []expect{
		{"deployed", guarded(newest(1, api.StatusDeployed, desired)), nil},
		{"the first install", guarded(newest(1, api.StatusFailed, desired)), &Decision{State: StateFailed, Step: StepInstall}},
		{"an upgrade", guarded(newest(2, api.StatusFailed, desired)), upgrade},
		{"an upgrade just now", guarded(newest(2, api.StatusFailed, desired), failedTo(desired, 4, 0)), wait(8 * time.Second)},
		{"an upgrade just now, and a person says try again", guarded(newest(2, api.StatusFailed, desired), failedTo(desired, 4, 0), nudged), upgrade},
		{"of another spec", guarded(newest(2, api.StatusFailed, "another"), failedTo("another", 4, 0)), nil},
		{"the first install, of another spec", guarded(newest(1, api.StatusFailed, "another")), nil},
		{"before anything was stored", guarded(newest(2, api.StatusDeployed, "another"), failedTo(desired, 1, 0)), wait(time.Second)},
		{"before anything was stored, long ago", guarded(newest(2, api.StatusDeployed, "another"), failedTo(desired, 1, time.Hour)), upgrade},
		{"of somebody else", guarded(newest(2, api.StatusFailed, ""), byOthers), nil},
		{"a rollback", guarded(newest(4, api.StatusFailed, desired), heldAt(2)), nil},
	})
	runCheck(t, failed, []expect{
		{"too often", guarded(third, goesBack(3), failedTo(desired, 3, 0)), &Decision{State: StateFailed, Step: StepRollback, Revision: 2}},
		{"not often enough", guarded(third, goesBack(3), failedTo(desired, 2, 0)), wait(2 * time.Second)},
		{"too often, and the rollback then", guarded(third, goesBack(3), failedTo(desired, 4, 0)), &Decision{State: StateFailed, Step: StepWait, After: 8 * time.Second, Revision: 2}},
		{"too often, and the rollback then, a while ago", guarded(third, goesBack(3), failedTo(desired, 4, 8*time.Second)), &Decision{State: StateFailed, Step: StepRollback, Revision: 2}},
		{"too often, with nothing to go back to", guarded(third, goesBack(3), func(o *Observation) { o.LastGood = 0 }, failedTo(desired, 3, 0)), wait(4 * time.Second)},
		{"too often, of a kind that goes on trying", guarded(third, goesBack(0), failedTo(desired, 9, 0)), wait(256 * time.Second)},
		{"too often, in an earlier process", guarded(third, goesBack(3)), upgrade},
		{"too often, for an earlier spec", guarded(third, goesBack(3), failedTo("another", 9, 0)), upgrade},
		{"too often, and a person says try again", guarded(third, goesBack(3), failedTo(desired, 3, 0), nudged), upgrade},
		{"too often before anything was stored, so that nothing has to go back", guarded(newest(3, api.StatusDeployed, "another"), goesBack(3), failedTo(desired, 3, 0)), wait(4 * time.Second)},
		{"the first install, too often", guarded(newest(1, api.StatusFailed, desired), goesBack(3), failedTo(desired, 3, 0)), wait(4 * time.Second)},
	})
}

func TestAim(t *testing.T) {
	deployed := newest(3, api.StatusDeployed, "another")
	for _, test := range []struct {
		name string
		o    Observation
		want string
	}{
		{"the spec", guarded(deployed), desired},
		{"the spec, once more", guarded(deployed, nudged), desired + "again"},
		{"that it is gone", guarded(deployed, asks(2), heldAt(1), beingDeleted), "gone"},
		{"that it is gone, once more", guarded(deployed, nudged, beingDeleted), "goneagain"},
		{"a revision", guarded(deployed, asks(2), heldAt(1)), "revision 2 asked"},
		{"a revision, once more", guarded(deployed, asks(2), nudged), "revision 2 askedagain"},
		{"a revision of no release", guarded(asks(2)), desired},
		{"to stay", guarded(deployed, heldAt(1)), "revision 1 held"},
		{"to stay, once more", guarded(deployed, heldAt(1), nudged), "revision 1 heldagain"},
		{"to stay after a failure", guarded(deployed, heldAt(1), byFailure), desired},
		{"the spec, after a hold", guarded(deployed, heldAt(1), specEdited), desired},
		{"the spec, where nothing is left to hold", guarded(newest(3, api.StatusUninstalled, ""), heldAt(1)), desired},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := Aim(test.o); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
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

// TestAimOf: what concerns different things fails apart from each other.
func TestAimOf(t *testing.T) {
	o := guarded(newest(3, api.StatusDeployed, "another"), nudged)
	for step, want := range map[Step]string{
		StepInstall: desired + "again", StepUpgrade: desired + "again", StepUnlock: desired + "again", StepTidy: desired + "again", StepAdopt: desired + "again",
		StepUninstall: "goneagain", StepTest: "testedagain", StepRepair: "repairedagain", StepVerify: "repairedagain",
	} {
		if got := AimOf(step, o); got != want {
			t.Errorf("%s: %q, want %q", step, got, want)
		}
	}
	beingDeleted(&o)
	if got := AimOf(StepOrphan, o); got != "goneagain" {
		t.Errorf("%s: %q", StepOrphan, got)
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
		{"an edit that failed", guarded(old, failedTo(desired, 1, time.Minute), limited), wait(StateFailed)},
		{"an edit that failed just now", guarded(old, failedTo(desired, 1, 0), limited), Decision{State: StateFailed, Step: StepWait, After: 4 * time.Second}},
		{"an edit that failed often", guarded(old, failedTo(desired, 5, 0), limited), Decision{State: StateFailed, Step: StepWait, After: 16 * time.Second}},
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
		{"a pause", guarded(old, isPaused, limited), Decision{State: StatePaused, Step: StepWait, Pending: StepUpgrade}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Next(test.o)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
