package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright/internal/api"
)

// rollsBackAfter sets the number of failures after which an upgrade is rolled back.
func rollsBackAfter(retries int) func(*Observation) {
	return func(o *Observation) { o.Retries, o.LastGood = retries, 2 }
}

func TestChain_Failed(t *testing.T) {
	upgrade := &Decision{State: StateFailed, Step: StepUpgrade}
	wait := func(after time.Duration) *Decision {
		return &Decision{State: StateFailed, Step: StepWait, After: after}
	}
	third := newest(3, api.StatusFailed, desired)
	runCheck(t, "failed", []expect{
		{"deployed", guarded(newest(1, api.StatusDeployed, desired)), nil},
		{"the first install", guarded(newest(1, api.StatusFailed, desired)), &Decision{State: StateFailed, Step: StepInstall}},
		{"an upgrade", guarded(newest(2, api.StatusFailed, desired)), upgrade},
		{"an upgrade recently", guarded(newest(2, api.StatusFailed, desired), failedTo(ofSpec, 4, 0)), wait(8 * time.Second)},
		{"an upgrade recently, retry requested", guarded(newest(2, api.StatusFailed, desired), failedTo(ofSpec, 4, 0), retryRequested), upgrade},
		{"an upgrade that waits for an approval", guarded(newest(2, api.StatusDeployed, "another"), failedTo(ofSpec, 1, time.Minute), waitsForApproval), wait(59 * time.Minute)},
		{"an upgrade that waits for an approval, given now", guarded(newest(2, api.StatusDeployed, "another"), failedTo(ofSpec, 1, 0), waitsForApproval, retryRequested), nil},
		{"of another spec", guarded(newest(2, api.StatusFailed, "another"), failedTo(TargetKey{Goal: GoalSpec, Digest: "another"}, 4, 0)), nil},
		{"the first install, of another spec", guarded(newest(1, api.StatusFailed, "another")), nil},
		{"before a revision was stored", guarded(newest(2, api.StatusDeployed, "another"), failedTo(ofSpec, 1, 0)), wait(time.Second)},
		{"before a revision was stored, long ago", guarded(newest(2, api.StatusDeployed, "another"), failedTo(ofSpec, 1, time.Hour)), upgrade},
		{"of another program", guarded(newest(2, api.StatusFailed, ""), byAnotherProgram), nil},
		{"a rollback", guarded(newest(4, api.StatusFailed, desired), heldAt(2)), nil},
	})
	runCheck(t, "failed", []expect{
		{"too often", guarded(third, rollsBackAfter(3), failedTo(ofSpec, 3, 0)), &Decision{State: StateFailed, Step: StepRollback, Revision: 2}},
		{"not often enough", guarded(third, rollsBackAfter(3), failedTo(ofSpec, 2, 0)), wait(2 * time.Second)},
		{"too often, and the rollback then", guarded(third, rollsBackAfter(3), failedTo(ofSpec, 4, 0)), &Decision{State: StateFailed, Step: StepWait, After: 8 * time.Second, Revision: 2}},
		{"too often, and the rollback then, a while ago", guarded(third, rollsBackAfter(3), failedTo(ofSpec, 4, 8*time.Second)), &Decision{State: StateFailed, Step: StepRollback, Revision: 2}},
		{"too often, and waits for an approval", guarded(third, rollsBackAfter(3), failedTo(ofSpec, 3, 0), waitsForApproval), wait(time.Hour)},
		{"too often, no good revision", guarded(third, rollsBackAfter(3), func(o *Observation) { o.LastGood = 0 }, failedTo(ofSpec, 3, 0)), wait(4 * time.Second)},
		{"too often, of a kind without rollback", guarded(third, rollsBackAfter(0), failedTo(ofSpec, 9, 0)), wait(256 * time.Second)},
		{"too often, in an earlier process", guarded(third, rollsBackAfter(3)), upgrade},
		{"too often, for an earlier spec", guarded(third, rollsBackAfter(3), failedTo(TargetKey{Goal: GoalSpec, Digest: "another"}, 9, 0)), upgrade},
		{"too often, retry requested", guarded(third, rollsBackAfter(3), failedTo(ofSpec, 3, 0), retryRequested), upgrade},
		{"too often before a revision was stored", guarded(newest(3, api.StatusDeployed, "another"), rollsBackAfter(3), failedTo(ofSpec, 3, 0)), wait(4 * time.Second)},
		{"the first install, too often", guarded(newest(1, api.StatusFailed, desired), rollsBackAfter(3), failedTo(ofSpec, 3, 0)), wait(4 * time.Second)},
	})
}

// waitsForApproval makes the failure a wait for an approval.
func waitsForApproval(o *Observation) { o.Failure.Waits = true }

// Targets of failures.
var (
	ofSpec    = TargetKey{Goal: GoalSpec, Digest: desired}
	gone      = TargetKey{Goal: GoalGone}
	requested = TargetKey{Goal: GoalRevision, Revision: 2, Request: "asked"}
	held      = TargetKey{Goal: GoalRevision, Revision: 2, Request: "held"}
)

// again returns the target after a request to retry.
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
		{"the spec, retry requested", guarded(deployed, retryRequested), ofSpec.again()},
		{"removal", guarded(deployed, requestsRollback(2), heldAt(1), beingDeleted), gone},
		{"removal, retry requested", guarded(deployed, retryRequested, beingDeleted), gone.again()},
		{"a revision", guarded(deployed, requestsRollback(2), heldAt(1)), requested},
		{"a revision, retry requested", guarded(deployed, requestsRollback(2), retryRequested), requested.again()},
		{"a revision, after an edit", guarded(deployed, requestsRollback(2), requestExpired), expired},
		{"a revision of no release", guarded(requestsRollback(2)), ofSpec},
		{"hold", guarded(deployed, heldAt(1)), first},
		{"hold, retry requested", guarded(deployed, heldAt(1), retryRequested), first.again()},
		{"hold after a failure", guarded(deployed, heldAt(1), byFailure), ofSpec},
		{"the spec, after a hold", guarded(deployed, heldAt(1), specEdited), ofSpec},
		{"the spec, hold without a release", guarded(newest(3, api.StatusUninstalled, ""), heldAt(1)), ofSpec},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := Target(test.o); got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}

// TestReached: a failure is obsolete if the release has reached the target all the
// same and nothing else was requested since.
func TestReached(t *testing.T) {
	deployed := newest(3, api.StatusDeployed, desired)
	old := newest(3, api.StatusDeployed, "another")
	for _, test := range []struct {
		name string
		o    Observation
		want bool
	}{
		{"desired revision is deployed", guarded(deployed), true},
		{"desired revision is deployed and drifted", guarded(deployed, drifted), true},
		{"desired revision is deployed during a deletion", guarded(deployed, beingDeleted), false},
		{"desired revision is deployed and an action runs", guarded(deployed, running(StepVerify)), false},
		{"desired revision is deployed and a rollback is requested", guarded(deployed, requestsRollback(1)), false},
		{"desired revision is deployed and a hold has expired", guarded(deployed, heldAt(1), specEdited), false},
		{"two revisions are deployed", guarded(deployed, inconsistent), false},
		{"desired revision of a release that is not owned", guarded(deployed, notOwned), false},
		{"desired revision has failed", guarded(newest(3, api.StatusFailed, desired)), false},
		{"desired revision is pending", guarded(newest(3, api.StatusPendingUpgrade, desired)), false},
		{"desired revision is superseded", guarded(newest(3, api.StatusSuperseded, desired)), false},
		{"another revision is deployed", guarded(old), false},
		{"another revision is deployed and held", guarded(old, heldAt(1)), true},
		{"another revision is deployed and held after a failure", guarded(old, heldAt(1), byFailure), true},
		{"another revision is deployed, hold expired", guarded(old, heldAt(1), specEdited), false},
		{"rollback of a held release failed", guarded(newest(3, api.StatusFailed, "another"), heldAt(1)), false},
		{"held release upgraded by another program", guarded(old, byAnotherProgram, heldAt(1)), false},
		{"no release", guarded(), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := Reached(test.o); got != test.want {
				t.Errorf("reached: %v, want %v", got, test.want)
			}
		})
	}
}

// TestTargetOf: steps for different purposes have different targets.
func TestTargetOf(t *testing.T) {
	o := guarded(newest(3, api.StatusDeployed, "another"), retryRequested)
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

// TestRollsBack tests the remediation policy for each point of failure.
func TestRollsBack(t *testing.T) {
	failedTwice := guarded(newest(3, api.StatusFailed, desired), failedTo(ofSpec, 2, 0))
	for _, test := range []struct {
		name     string
		at       failedAt
		retries  int
		lastGood int
		number   int
		attempts int
		// transients are those of the attempts without an available API server.
		transients int
		want       bool
	}{
		{"fewer failures than retries", stored, 3, 2, 3, 2, 0, false},
		{"as many failures as retries", stored, 2, 2, 3, 2, 0, true},
		{"more failures than retries", stored, 1, 2, 3, 2, 0, true},
		{"outages only", stored, 2, 2, 3, 9, 9, false},
		{"fewer other failures than retries", stored, 2, 2, 3, 9, 8, false},
		{"as many other failures as retries", stored, 2, 2, 3, 9, 7, true},
		{"a kind without retries", stored, 0, 2, 3, 9, 0, false},
		{"no good revision", stored, 1, 0, 3, 2, 0, false},
		{"the first revision", stored, 1, 2, 1, 2, 0, false},
		{"nothing stored", unstored, 1, 2, 3, 9, 0, false},
		{"overdue objects", overdue, 3, 2, 3, 0, 0, true},
		{"overdue objects of a kind without retries", overdue, 0, 2, 3, 0, 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := failedTwice
			newest, failure := *o.Newest, *o.Failure
			newest.Number, failure.Attempts, failure.Transients = test.number, test.attempts, test.transients
			o.Newest, o.Failure, o.Retries, o.LastGood = &newest, &failure, test.retries, test.lastGood
			if got := rollsBack(o, test.at); got != test.want {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}

// TestSteps_ChangesAndRepairs: Ready reports a pause only if the pending step changes
// the release.
func TestSteps_ChangesAndRepairs(t *testing.T) {
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
		if got := Backoff(attempts); got != want {
			t.Errorf("after %d failures %s, want %s", attempts, got, want)
		}
	}
}

// TestRetry_Limit: only steps that authors of custom resources can cause wait until
// the next action may begin.
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
		{"an edit that failed recently", guarded(old, failedTo(ofSpec, 1, 0), limited), Decision{State: StateFailed, Step: StepWait, After: 4 * time.Second}},
		{"an edit that failed often", guarded(old, failedTo(ofSpec, 5, 0), limited), Decision{State: StateFailed, Step: StepWait, After: 16 * time.Second}},
		{"an install", guarded(limited), wait(StateAbsent)},
		{"a request for tests", guarded(deployed, requestsTests, limited), wait(StateUntested)},
		{"a request for a rollback", guarded(old, requestsRollback(1), limited), Decision{State: StateRollbackRequested, Step: StepWait, Revision: 1, After: 4 * time.Second, Throttled: true}},
		{"a request to verify", guarded(deployed, requestsVerification, limited), wait(StateDue)},
		{"the period", guarded(deployed, overdue, limited), Decision{State: StateDue, Step: StepVerify}},
		{"drift", guarded(deployed, drifted, limited), Decision{State: StateDrifted, Step: StepRepair}},
		{"drift while an edit waits", guarded(old, drifted, limited), Decision{State: StateDrifted, Step: StepRepair}},
		{"drift while a rollback waits", guarded(old, drifted, requestsRollback(1), limited), Decision{State: StateDrifted, Step: StepRepair}},
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
