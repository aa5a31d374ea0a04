package plan

import (
	"testing"
	"time"

	"github.com/chartwright/chartwright/internal/api"
)

// requestsRollback adds an unanswered rollback request.
func requestsRollback(revision int) func(*Observation) {
	return func(o *Observation) { o.Request = &Request{Token: "asked", Revision: revision} }
}

// requestExpired reports an edit of the spec after a failed attempt to answer the
// request.
func requestExpired(o *Observation) { o.Request.Expired = true }

func requestsResume(o *Observation) { o.Request = &Request{Token: "asked", Resume: true} }

// heldAt adds a hold by an earlier request.
func heldAt(revision int) func(*Observation) {
	return func(o *Observation) { o.Held = &Held{Revision: revision, Token: "held"} }
}

// specEdited makes the hold expire.
func specEdited(o *Observation) { o.Held.Expired = true }

func byFailure(o *Observation) { o.Held.ByFailure = true }

func isInvalid(o *Observation) { o.Invalid = &Problem{Message: "spec: expected an object"} }

func waits(o *Observation) { o.Dependency = &Obstacle{Message: "Database db is not ready"} }

// valuesWait makes the values invalid until the dependency is ready, in an hour.
func valuesWait(o *Observation) { o.Invalid.Waits, o.Dependency.After = true, time.Hour }

func retryRequested(o *Observation) { o.RetryToken = "again" }

func TestChain_RollbackRequested(t *testing.T) {
	deployed := newest(3, api.StatusDeployed, desired)
	back := &Decision{State: StateRollbackRequested, Step: StepRollback, Revision: 2}
	resume := &Decision{State: StateRollbackRequested, Step: StepResume}
	refuse := &Decision{State: StateRollbackRequested, Step: StepRefuse}
	runCheck(t, "rollbackRequested", []expect{
		{"not requested", guarded(deployed), nil},
		{"an earlier revision", guarded(deployed, requestsRollback(2)), back},
		{"an earlier revision, newest failed", guarded(newest(3, api.StatusFailed, desired), requestsRollback(2)), back},
		{"an earlier revision, upgraded by another program", guarded(newest(3, api.StatusDeployed, ""), byAnotherProgram, requestsRollback(2)), back},
		{"an earlier revision, invalid spec", guarded(deployed, requestsRollback(2), isInvalid), back},
		{"a revision other than the held one", guarded(deployed, heldAt(1), requestsRollback(2)), back},
		{"the end of a hold", guarded(deployed, heldAt(2), requestsResume), resume},
		{"the end of a hold without a hold", guarded(deployed, requestsResume), resume},
		{"an unavailable revision", guarded(deployed, requestsRollback(0)), refuse},
		{"no release yet", guarded(requestsRollback(2)), nil},
		{"release not owned", guarded(deployed, notOwned, requestsRollback(2)), nil},
		{"uninstalled by another program", guarded(newest(3, api.StatusUninstalled, ""), requestsRollback(2)), nil},
		{"another program uninstalls", guarded(newest(3, api.StatusUninstalling, desired), requestsRollback(2)), nil},
		{"rollback failed recently", guarded(deployed, requestsRollback(2), failedTo(requested, 3, 0)), &Decision{State: StateRollbackRequested, Step: StepWait, After: 4 * time.Second, Revision: 2}},
		{"rollback failed, retry requested", guarded(deployed, requestsRollback(2), failedTo(requested, 3, 0), retryRequested), back},
		{"rollback failed recently, spec edited", guarded(deployed, requestsRollback(2), requestExpired, failedTo(requested, 3, 0)), refuse},
		{"rollback failed recently, drifted", guarded(newest(3, api.StatusDeployed, "another"), requestsRollback(2), drifted, failedTo(requested, 3, 0)), &Decision{State: StateDrifted, Step: StepRepair}},
		{"rollback and repair failed recently", guarded(deployed, requestsRollback(2), drifted, failedTo(requested, 3, 0), repairFailed), &Decision{State: StateRollbackRequested, Step: StepWait, After: time.Second, Revision: 2}},
		{"rollback failed recently, unverified", guarded(deployed, requestsRollback(2), unverified, failedTo(requested, 3, 0)), &Decision{State: StateUnverified, Step: StepVerify}},
		{"rollback failed recently, drifted, newest revision failed", guarded(newest(3, api.StatusFailed, desired), requestsRollback(2), drifted, failedTo(requested, 3, 0)), &Decision{State: StateRollbackRequested, Step: StepWait, After: 4 * time.Second, Revision: 2}},
		{"an earlier rollback failed recently", guarded(deployed, requestsRollback(2), failedTo(held, 3, 0)), back},
		{"an upgrade failed recently", guarded(deployed, requestsRollback(2), failedTo(ofSpec, 9, 0)), back},
	})
}

func TestChain_HeldBack(t *testing.T) {
	back := &Decision{State: StateHeld, Step: StepRollback, Revision: 2}
	resume := &Decision{State: StateHeld, Step: StepResume}
	another := newest(4, api.StatusDeployed, "another")
	runCheck(t, "heldBack", []expect{
		{"no hold", guarded(another), nil},
		{"held", guarded(another, heldAt(2)), nil},
		{"rollback failed midway", guarded(newest(4, api.StatusFailed, "another"), heldAt(2)), back},
		{"upgraded by another program", guarded(newest(5, api.StatusDeployed, ""), byAnotherProgram, heldAt(2)), back},
		{"upgrade of another program failed", guarded(newest(5, api.StatusFailed, ""), byAnotherProgram, heldAt(2)), back},
		{"superseded, newer record lost", guarded(newest(4, api.StatusSuperseded, "another"), heldAt(2)), back},
		{"uninstalled by another program", guarded(newest(4, api.StatusUninstalled, ""), heldAt(2)), nil},
		{"failed recently", guarded(newest(4, api.StatusFailed, "another"), heldAt(2), failedTo(held, 2, 0)), &Decision{State: StateHeld, Step: StepWait, After: 2 * time.Second, Revision: 2}},
		{"failed, retry requested", guarded(newest(4, api.StatusFailed, "another"), heldAt(2), failedTo(held, 2, 0), retryRequested), back},
		{"rollback after failures failed recently", guarded(newest(4, api.StatusFailed, "another"), heldAt(2), byFailure, failedTo(ofSpec, 4, 0)), &Decision{State: StateHeld, Step: StepWait, After: 8 * time.Second, Revision: 2}},
		{"hold expired, spec equals the deployed revision", guarded(newest(4, api.StatusDeployed, desired), heldAt(2), specEdited), resume},
		{"hold expired, spec differs", guarded(another, heldAt(2), specEdited), nil},
		{"hold expired, spec invalid", guarded(newest(4, api.StatusDeployed, desired), heldAt(2), specEdited, isInvalid), nil},
		{"hold expired, newest revision failed", guarded(newest(4, api.StatusFailed, desired), heldAt(2), specEdited), nil},
		{"hold expired, upgraded by another program", guarded(newest(5, api.StatusDeployed, ""), byAnotherProgram, heldAt(2), specEdited), nil},
		{"spec equals the deployed revision and was not edited", guarded(newest(4, api.StatusDeployed, desired), heldAt(2)), nil},
	})
}

func TestChain_Held(t *testing.T) {
	another := newest(4, api.StatusDeployed, "another")
	period := func(o *Observation) { o.Period, o.Applied = time.Minute, now.Add(-20*time.Second) }
	runCheck(t, "held", []expect{
		{"no hold", guarded(another), nil},
		{"a hold", guarded(another, heldAt(2)), &Decision{State: StateHeld, Step: StepWait}},
		{"until the period ends", guarded(another, heldAt(2), period), &Decision{State: StateHeld, Step: StepWait, After: 40 * time.Second}},
		{"expired hold", guarded(another, heldAt(2), specEdited), nil},
		{"hold without a release", guarded(heldAt(2)), nil},
	})
}
