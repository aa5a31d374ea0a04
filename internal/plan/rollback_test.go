package plan

import (
	"testing"
	"time"

	"github.com/chartwright/chartwright/internal/api"
)

// asks is a rollback request that was not answered yet.
func asks(revision int) func(*Observation) {
	return func(o *Observation) { o.Request = &Request{Token: "asked", Revision: revision} }
}

// inVain is a request of which a try has failed before the spec was edited.
func inVain(o *Observation) { o.Request.Expired = true }

func asksForNone(o *Observation) { o.Request = &Request{Token: "asked", Resume: true} }

// heldAt is a hold that an earlier request led to.
func heldAt(revision int) func(*Observation) {
	return func(o *Observation) { o.Held = &Held{Revision: revision, Token: "held"} }
}

// specEdited ends a hold.
func specEdited(o *Observation) { o.Held.Expired = true }

func byFailure(o *Observation) { o.Held.ByFailure = true }

func isInvalid(o *Observation) { o.Invalid = &Problem{Message: "spec: expected an object"} }

func nudged(o *Observation) { o.RetryToken = "again" }

func TestRollbackRequested(t *testing.T) {
	deployed := newest(3, api.StatusDeployed, desired)
	back := &Decision{State: StateRollbackRequested, Step: StepRollback, Revision: 2}
	resume := &Decision{State: StateRollbackRequested, Step: StepResume}
	refuse := &Decision{State: StateRollbackRequested, Step: StepRefuse}
	runCheck(t, "rollbackRequested", []expect{
		{"nobody asks", guarded(deployed), nil},
		{"an earlier revision", guarded(deployed, asks(2)), back},
		{"an earlier revision of what failed", guarded(newest(3, api.StatusFailed, desired), asks(2)), back},
		{"an earlier revision of what somebody upgraded", guarded(newest(3, api.StatusDeployed, ""), byOthers, asks(2)), back},
		{"an earlier revision, of an invalid spec", guarded(deployed, asks(2), isInvalid), back},
		{"another revision than the held one", guarded(deployed, heldAt(1), asks(2)), back},
		{"the end of a hold", guarded(deployed, heldAt(2), asksForNone), resume},
		{"the end of no hold", guarded(deployed, asksForNone), resume},
		{"a revision that is not to be had", guarded(deployed, asks(0)), refuse},
		{"there is no release yet", guarded(asks(2)), nil},
		{"the release is another's", guarded(deployed, ofAnother, asks(2)), nil},
		{"somebody has uninstalled it", guarded(newest(3, api.StatusUninstalled, ""), asks(2)), nil},
		{"somebody uninstalls it", guarded(newest(3, api.StatusUninstalling, desired), asks(2)), nil},
		{"the rollback failed just now", guarded(deployed, asks(2), failedTo(requested, 3, 0)), &Decision{State: StateRollbackRequested, Step: StepWait, After: 4 * time.Second, Revision: 2}},
		{"the rollback failed, and a person says try again", guarded(deployed, asks(2), failedTo(requested, 3, 0), nudged), back},
		{"the rollback failed just now, and the spec was edited", guarded(deployed, asks(2), inVain, failedTo(requested, 3, 0)), refuse},
		{"the rollback failed just now, and what runs is damaged", guarded(newest(3, api.StatusDeployed, "another"), asks(2), damaged, failedTo(requested, 3, 0)), &Decision{State: StateDrifted, Step: StepRepair}},
		{"the rollback failed just now, and so did the repair", guarded(deployed, asks(2), damaged, failedTo(requested, 3, 0), repairFailed), &Decision{State: StateRollbackRequested, Step: StepWait, After: time.Second, Revision: 2}},
		{"the rollback failed just now, and nobody knows what runs", guarded(deployed, asks(2), unknown, failedTo(requested, 3, 0)), &Decision{State: StateUnverified, Step: StepVerify}},
		{"the rollback failed just now, and what failed before is damaged", guarded(newest(3, api.StatusFailed, desired), asks(2), damaged, failedTo(requested, 3, 0)), &Decision{State: StateRollbackRequested, Step: StepWait, After: 4 * time.Second, Revision: 2}},
		{"an earlier rollback failed just now", guarded(deployed, asks(2), failedTo(held, 3, 0)), back},
		{"an upgrade failed just now", guarded(deployed, asks(2), failedTo(ofSpec, 9, 0)), back},
	})
}

func TestHeldBack(t *testing.T) {
	back := &Decision{State: StateHeld, Step: StepRollback, Revision: 2}
	resume := &Decision{State: StateHeld, Step: StepResume}
	another := newest(4, api.StatusDeployed, "another")
	runCheck(t, "heldBack", []expect{
		{"no hold", guarded(another), nil},
		{"at rest", guarded(another, heldAt(2)), nil},
		{"the rollback failed half-way", guarded(newest(4, api.StatusFailed, "another"), heldAt(2)), back},
		{"somebody upgraded it", guarded(newest(5, api.StatusDeployed, ""), byOthers, heldAt(2)), back},
		{"somebody's upgrade failed", guarded(newest(5, api.StatusFailed, ""), byOthers, heldAt(2)), back},
		{"what superseded it is lost", guarded(newest(4, api.StatusSuperseded, "another"), heldAt(2)), back},
		{"somebody uninstalled it", guarded(newest(4, api.StatusUninstalled, ""), heldAt(2)), nil},
		{"it failed just now", guarded(newest(4, api.StatusFailed, "another"), heldAt(2), failedTo(held, 2, 0)), &Decision{State: StateHeld, Step: StepWait, After: 2 * time.Second, Revision: 2}},
		{"it failed, and a person says try again", guarded(newest(4, api.StatusFailed, "another"), heldAt(2), failedTo(held, 2, 0), nudged), back},
		{"it went back by failure, which failed just now", guarded(newest(4, api.StatusFailed, "another"), heldAt(2), byFailure, failedTo(ofSpec, 4, 0)), &Decision{State: StateHeld, Step: StepWait, After: 8 * time.Second, Revision: 2}},
		{"the hold is over, and the spec asks for what runs", guarded(newest(4, api.StatusDeployed, desired), heldAt(2), specEdited), resume},
		{"the hold is over, and the spec asks for something else", guarded(another, heldAt(2), specEdited), nil},
		{"the hold is over, and the spec cannot be used", guarded(newest(4, api.StatusDeployed, desired), heldAt(2), specEdited, isInvalid), nil},
		{"the hold is over, and what runs has failed", guarded(newest(4, api.StatusFailed, desired), heldAt(2), specEdited), nil},
		{"the hold is over, and somebody upgraded it", guarded(newest(5, api.StatusDeployed, ""), byOthers, heldAt(2), specEdited), nil},
		{"the spec asks for what runs, and was not edited", guarded(newest(4, api.StatusDeployed, desired), heldAt(2)), nil},
	})
}

func TestHeld(t *testing.T) {
	another := newest(4, api.StatusDeployed, "another")
	period := func(o *Observation) { o.Period, o.Applied = time.Minute, now.Add(-20*time.Second) }
	runCheck(t, "held", []expect{
		{"no hold", guarded(another), nil},
		{"a hold", guarded(another, heldAt(2)), &Decision{State: StateHeld, Step: StepWait}},
		{"until the period ends", guarded(another, heldAt(2), period), &Decision{State: StateHeld, Step: StepWait, After: 40 * time.Second}},
		{"a hold that is over", guarded(another, heldAt(2), specEdited), nil},
		{"nothing is left to hold", guarded(heldAt(2)), nil},
	})
}
