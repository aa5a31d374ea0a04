package status

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/inventory"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/release"
)

// observed changes the observation.
func observed(change func(*plan.Observation)) func(*Snapshot) {
	return func(v *Snapshot) { change(&v.Observation) }
}

func isHeld(o *plan.Observation) { o.Held = &plan.Held{Revision: 1, Token: "held"} }

func holdExpired(o *plan.Observation) { isHeld(o); o.Held.Expired = true }

func isPaused(o *plan.Observation) { o.Paused = true }

func hasDrift(v *Snapshot) {
	v.Observation.Drifted, v.Drift = true, []inventory.Drift{{Key: front}}
}

func notCorrected(foreign bool) func(*Snapshot) {
	return func(v *Snapshot) {
		v.RepairFailure = &Failure{Failure: plan.Failure{Target: plan.TargetOf(plan.StepRepair, v.Observation)}, Reason: api.EventRepairFailed, Message: "why", Foreign: foreign}
	}
}

func isOld(o *plan.Observation) { o.Newest.Digest = "older" }

// TestReadiness_EveryState tests the condition Ready and the STATUS column.
func TestReadiness_EveryState(t *testing.T) {
	deployed, upgraded := []string{dep}, []string{dep, sup}
	request := func(o *plan.Observation) { o.Request = &plan.Request{Token: "q", Revision: 1} }
	unavailable := func(o *plan.Observation) { o.Request = &plan.Request{Token: "q"} }
	for _, test := range []struct {
		name string
		v    *Snapshot
		want string
	}{
		{"in sync", viewOf(deployed), "InSync: True Deployed, Deployed"},
		{"to be installed", viewOf(nil), "Absent: Unknown Installing reconciling, Installing"},
		{"to be upgraded", viewOf(deployed, observed(isOld)), "OutOfSync: Unknown Upgrading reconciling, Upgrading"},
		{"without the finalizer", viewOf(nil, observed(func(o *plan.Observation) { o.Finalizer = false })), "Unguarded: Unknown Installing reconciling, Installing"},
		{"drifted", viewOf(deployed, observed(func(o *plan.Observation) { o.Drifted = true })), "Drifted: True Deployed, Deployed"},
		{"to be verified", viewOf(deployed, observed(func(o *plan.Observation) { o.Unverified = true })), "Due: True Deployed, Deployed"},
		{"to be tested", viewOf(deployed, observed(func(o *plan.Observation) { o.TestRequested = true })), "Untested: True Deployed, Deployed"},
		{"being tested", viewOf(deployed, runningStep(plan.StepTest)), "Busy: True Deployed, Deployed"},
		{"being repaired", viewOf(deployed, runningStep(plan.StepRepair)), "Busy: True Deployed, Deployed"},
		{"being resumed", viewOf(deployed, runningStep(plan.StepResume)), "Busy: True Deployed, Deployed"},
		{"being rolled back", viewOf(upgraded, runningStep(plan.StepRollback)), "Busy: Unknown RollingBack reconciling, RollingBack"},
		{"being adopted", viewOf(deployed, runningStep(plan.StepAdopt)), "Busy: Unknown Adopting reconciling, Adopting"},
		{"being orphaned", viewOf(deployed, beingDeleted, runningStep(plan.StepOrphan)), "Busy: False Orphaning reconciling, Orphaning"},
		{"to be orphaned", viewOf(deployed, beingDeleted, observed(func(o *plan.Observation) { o.Orphan = true })), "Deleting: False Orphaning reconciling, Orphaning"},
		{"to be uninstalled", viewOf(deployed, beingDeleted), "Deleting: False Uninstalling reconciling, Uninstalling"},
		{"uninstalled", viewOf(nil, beingDeleted), "Deleted: False Uninstalling reconciling, Uninstalling"},
		{"an uninstall to be finished", viewOf([]string{api.StatusUninstalling}), "Uninstalling: False Uninstalling reconciling, Uninstalling"},
		{"interrupted", viewOf([]string{api.StatusPendingUpgrade, dep}), "Locked: Unknown Locked reconciling, Locked"},
		{"name of another owner", viewOf(nil, observed(func(o *plan.Observation) { o.Conflict = true })), "Conflict: False ReleaseNameConflict stalled, ReleaseNameConflict"},
		{"adoptable release", viewOf(deployed, observed(func(o *plan.Observation) { o.Adoptable, o.Newest.Owned = true, false })), "Unmanaged: Unknown Adopting reconciling, Adopting"},
		{"an invalid spec", viewOf(deployed, observed(func(o *plan.Observation) {
			o.Invalid = &plan.Problem{Reason: api.ReasonInvalidValues, Message: "spec: no"}
		})), "Invalid: False InvalidValues stalled, InvalidValues"},
		{"an upgrade to be retried", viewOf([]string{fai, dep}), "Failed: Unknown Upgrading reconciling, Upgrading"},

		{"to be rolled back", viewOf(upgraded, observed(request)), "RollbackRequested: Unknown RollingBack reconciling, RollingBack"},
		{"a rollback to be refused", viewOf(upgraded, observed(unavailable)), "RollbackRequested: True Deployed, Deployed"},
		{"held", viewOf(upgraded, observed(isOld), observed(isHeld)), "Held: True Deployed, Held (rev 1)"},
		{"held and drifted", viewOf(upgraded, observed(isHeld), observed(func(o *plan.Observation) { o.Drifted = true })), "Drifted: True Deployed, Held (rev 1)"},
		{"held and changed by another program", viewOf(upgraded, observed(isHeld), observed(func(o *plan.Observation) { o.Newest.WrittenByUs = false })), "Held: Unknown RollingBack reconciling, RollingBack"},
		{"drifted, and an object belongs to others", viewOf(deployed, hasDrift, notCorrected(true)), "Drifted: False ObjectConflict stalled, ObjectConflict"},
		{"an object belonged to others", viewOf(deployed, notCorrected(true)), "InSync: True Deployed, Deployed"},
		{"drifted, and a correction failed", viewOf(deployed, hasDrift, notCorrected(false)), "Drifted: True Deployed, Deployed"},
		{"a hold to be ended", viewOf(upgraded, observed(holdExpired)), "Held: True Deployed, Deployed"},
		{"an expired hold", viewOf(upgraded, observed(isOld), observed(holdExpired)), "OutOfSync: Unknown Upgrading reconciling, Upgrading"},
		{"a rollback that fails", viewOf(upgraded, observed(request), withFailure(plan.TargetKey{Goal: plan.GoalRevision, Revision: 1, Request: "q"}, api.ReasonRollbackFailed, false)), "RollbackRequested: False RollbackFailed reconciling, RollbackFailed"},

		{"paused, with nothing to do", viewOf(deployed, observed(isPaused)), "Paused: True Deployed, Paused"},
		{"paused while held", viewOf(upgraded, observed(isOld), observed(isHeld), observed(isPaused)), "Paused: True Deployed, Held (rev 1)"},
		{"paused before an upgrade", viewOf(deployed, observed(isOld), observed(isPaused)), "Paused: False Paused, Paused"},
		{"paused before an install", viewOf(nil, observed(isPaused)), "Paused: False Paused, Paused"},
		{"paused before the finalizer", viewOf(nil, observed(isPaused), observed(func(o *plan.Observation) { o.Finalizer = false })), "Paused: False Paused, Paused"},
		{"paused before a repair", viewOf(deployed, observed(isPaused), observed(func(o *plan.Observation) { o.Drifted = true })), "Paused: True Deployed, Paused"},
		{"paused before a rollback", viewOf(upgraded, observed(isPaused), observed(request)), "Paused: False Paused, Paused"},
		{"paused while another program changes the release", viewOf([]string{api.StatusPendingUpgrade, dep}, observed(isPaused), observed(func(o *plan.Observation) { o.Newest.WrittenByUs, o.Newest.Timeout = false, 1 })), "Paused: Unknown Locked reconciling, Paused"},
		{"paused with an invalid spec", viewOf(deployed, observed(isPaused), observed(func(o *plan.Observation) {
			o.Invalid = &plan.Problem{Reason: api.ReasonInvalidValues, Message: "spec: no"}
		})), "Paused: False InvalidValues stalled, Paused"},
		{"paused with an invalid spec and no release", viewOf(nil, observed(isPaused), observed(func(o *plan.Observation) {
			o.Invalid = &plan.Problem{Reason: api.ReasonInvalidValues, Message: "spec: no"}
		})), "Paused: False InvalidValues stalled, Paused"},
		{"paused with a name conflict", viewOf(nil, observed(isPaused), observed(func(o *plan.Observation) { o.Conflict = true })), "Paused: False ReleaseNameConflict stalled, Paused"},
		{"paused before its deletion", viewOf(deployed, beingDeleted, observed(isPaused), observed(func(o *plan.Observation) { o.PausedDeletion = true })), "Paused: False Paused, Paused"},
		{"paused after a failure", viewOf([]string{fai, dep}, observed(isPaused), withFailure(ofSpec, api.ReasonUpgradeFailed, false)), "Paused: False UpgradeFailed reconciling, Paused"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := plan.Next(test.v.Observation)
			s := readiness(test.v, d)
			got := fmt.Sprintf("%s: %s %s", d.State, s.status, s.reason)
			if s.reconciling {
				got += " reconciling"
			}
			if s.stalled {
				got += " stalled"
			}
			if got += ", " + s.state; got != test.want {
				t.Errorf("%s\nwant %s", got, test.want)
			}
			if s.message == "" || s.status == metav1.ConditionUnknown && !s.reconciling {
				t.Errorf("neither a message nor Reconciling explains the state: %+v", s)
			}
		})
	}
}

// TestReadiness_WaitsNameNextAction: while a deployed release waits for an upgrade, no text
// speaks of an install, and the message has the time of the next action.
func TestReadiness_WaitsNameNextAction(t *testing.T) {
	now := time.Date(2026, 5, 6, 7, 8, 9, 500, time.UTC)
	failed := func(v *Snapshot) {
		withFailure(ofSpec, api.ReasonUpgradeFailed, false)(v)
		v.Failure.Attempts, v.Failure.At = 3, now
	}
	const retry = "because. Next attempt at 2026-05-06T07:08:13Z"
	throttled := observed(func(o *plan.Observation) { o.Now, o.Earliest = now, now.Add(4*time.Second) })
	long := viewOf([]string{dep}, failed)
	long.Failure.Message = strings.Repeat("x", 10_000)
	for _, test := range []struct {
		name string
		v    *Snapshot
		want string
	}{
		{"failed", viewOf([]string{dep}, failed), retry},
		{"failed, with a long message", long, "…" + strings.TrimPrefix(retry, "because")},
		{"retried", viewOf([]string{dep}, failed, runningStep(plan.StepUpgrade)), retry},
		{"paused", viewOf([]string{dep}, failed, observed(isPaused)), "because"},
		{"stalled", viewOf([]string{dep}, failed, func(v *Snapshot) { v.Failure.Stalled = true }), "because"},
		{"throttled", viewOf([]string{dep}, observed(isOld), throttled), "The next action on release web begins at 2026-05-06T07:08:13Z, because many were requested"},
		{"inconsistent records", viewOf([]string{dep}, observed(func(o *plan.Observation) { o.Inconsistent = true })), "Release web is being upgraded"},
		{"inconsistent records of a failed install", viewOf([]string{fai}, observed(func(o *plan.Observation) { o.Inconsistent = true })), "Release web is being installed"},
	} {
		s := readiness(test.v, plan.Next(test.v.Observation))
		if len(s.message) > maxCondition || !strings.HasSuffix(s.message, test.want) || test.v != long && s.message != test.want {
			t.Errorf("%s: %q, want %q", test.name, api.Truncate(s.message, 200), test.want)
		}
	}
}

func TestHeld_ReasonAndMessage(t *testing.T) {
	heldSince := func(m release.Marks) *Snapshot {
		v := viewOf([]string{dep, sup, sup}, observed(isHeld), marked(m))
		written(v)
		return v
	}
	asked := release.Marks{Held: &release.Held{Revision: 1, From: 2}}
	failed := release.Marks{Held: &release.Held{Revision: 1, From: 2, ByFailure: true}}
	v := heldSince(asked)
	reason, message := held(v)
	want := `Rolled back from revision 2 to revision 1 at 2026-01-02T03:04:05Z, as requested by the annotation rollback-to. Held until you edit the spec or set chartwright.dev/rollback-to to "none"`
	if reason != api.ReasonRolledBack || message != want {
		t.Errorf("%s: %s", reason, message)
	}
	if s := rollback(v); s.To != 1 || s.From != 2 || s.Since.IsZero() {
		t.Errorf("status %+v", s)
	}
	if reason, message := held(heldSince(failed)); reason != api.ReasonRolledBackAfterFailure || !strings.Contains(message, "the upgrade failed repeatedly") {
		t.Errorf("after failures: %s: %s", reason, message)
	}
	for name, v := range map[string]*Snapshot{
		"no hold":                        viewOf([]string{dep}),
		"an expired hold":                viewOf([]string{dep, sup}, observed(holdExpired), marked(asked)),
		"a hold of an adoptable release": viewOf([]string{dep, sup}, marked(asked)),
	} {
		if reason, message := held(v); rollback(v) != nil || reason != "" || message != "" {
			t.Errorf("%s: %s: %s", name, reason, message)
		}
	}
}

func TestPausing(t *testing.T) {
	for _, test := range []struct {
		d    plan.Decision
		want string
	}{
		{plan.Decision{State: plan.StateInSync}, ""},
		{plan.Decision{State: plan.StatePaused, Pending: plan.Pending{State: plan.StateInSync, Step: plan.StepWait}}, "no changes pending"},
		{plan.Decision{State: plan.StatePaused, Pending: plan.Pending{State: plan.StateOutOfSync, Step: plan.StepUpgrade}}, "pending step: Upgrade"},
		{plan.Decision{State: plan.StatePaused, Pending: plan.Pending{State: plan.StateDrifted, Step: plan.StepRepair}}, "pending step: Repair"},
	} {
		got := pausing(test.d)
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) || got != "" && !strings.Contains(got, api.AnnotationPause) {
			t.Errorf("%+v: %q, want %q", test.d, got, test.want)
		}
	}
}

// TestCompute_ConditionsOfRequests: each condition exists only while it is True.
func TestCompute_ConditionsOfRequests(t *testing.T) {
	tests := func(passed bool) func(*Snapshot) {
		return func(v *Snapshot) { v.History[0].Tested = &release.Tested{Passed: passed, Message: "how it went"} }
	}
	plain := viewOf([]string{dep, sup})
	rest := []string{"Ready=True Deployed", "Deployed=True UpgradeSuccessful"}
	for _, test := range []struct {
		name string
		v    *Snapshot
		want string
	}{
		{"held", viewOf([]string{dep, sup}, observed(isHeld), marked(release.Marks{Held: &release.Held{Revision: 1, From: 1}})), "Held=True RolledBack"},
		{"paused", viewOf([]string{dep, sup}, observed(isPaused)), "Paused=True Paused"},
		{"tested", viewOf([]string{dep, sup}, tests(true)), "Tested=True TestsPassed"},
		{"tested, which failed", viewOf([]string{dep, sup}, tests(false)), "Tested=False TestsFailed"},
		{"refused", viewOf([]string{dep, sup}, asking("rollback-to", "7"), marked(release.Marks{Rollback: Token("7"), Refused: true})), "RollbackRefused=True NoSuchRevision"},
		{"malformed", viewOf([]string{dep, sup}, asking("rollback-to", "x")), "RollbackRefused=True InvalidValue"},
		{"an unknown annotation", viewOf([]string{dep, sup}, asking("rolback-to", "1")), "InvalidAnnotations=True InvalidValue"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := Compute(test.v, plan.Next(test.v.Observation), nil)
			if got, want := strings.Join(conditions(s), ", "), strings.Join(append(rest[:2:2], test.want), ", "); got != want {
				t.Errorf("%s\nwant %s", got, want)
			}
			for _, c := range s.Conditions {
				if c.Message == "" {
					t.Errorf("%s has no message", c.Type)
				}
			}
			gone := Compute(plain, plan.Next(plain.Observation), s.Conditions)
			if got, want := strings.Join(conditions(gone), ", "), strings.Join(rest, ", "); got != want {
				t.Errorf("afterwards %s\nwant %s", got, want)
			}
		})
	}
}

func TestReadiness_ReportsQueuedActions(t *testing.T) {
	v := viewOf(nil, runningStep(plan.StepInstall))
	busy := plan.Decision{State: plan.StateBusy}
	if message := readiness(v, busy).message; strings.Contains(message, "queued") {
		t.Errorf("a running install: %s", message)
	}
	v.Observation.Running.Queued = true
	if message := readiness(v, busy).message; !strings.Contains(message, "queued") {
		t.Errorf("a queued install: %s", message)
	}
}
