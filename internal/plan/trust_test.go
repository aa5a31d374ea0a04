package plan

import (
	"testing"
	"time"

	"github.com/chartwright/chartwright/internal/api"
)

// isUntrusted: an action has found that its record is not authenticated.
func isUntrusted(o *Observation) { o.Newest.Untrusted = true }

// isUnsigned: the current key has not signed the newest record.
func isUnsigned(o *Observation) { o.Unsigned = true }

func TestUnsigned(t *testing.T) {
	deployed := newest(1, api.StatusDeployed, desired)
	runCheck(t, "unsigned", []expect{
		{"signed", guarded(deployed), nil},
		{"not signed", guarded(deployed, isUnsigned), &Decision{State: StateUnsigned, Step: StepSign}},
		{"not signed, and the record could not be written just now", guarded(deployed, isUnsigned, failedTo(TargetKey{Goal: GoalSigned}, 1, 0)), &Decision{State: StateUnsigned, Step: StepWait, After: time.Second}},
		{"not signed, and not proven", guarded(deployed, isUnsigned, isUntrusted), nil},
		{"not signed, and somebody upgraded the release", guarded(newest(2, api.StatusDeployed, ""), byOthers, isUnsigned), nil},
	})
}

// TestUntrusted: nothing from such a record is applied. The release is upgraded,
// unless a hold or a rollout keeps it where it is.
func TestUntrusted(t *testing.T) {
	deployed, old := newest(2, api.StatusDeployed, desired), newest(2, api.StatusDeployed, "another")
	passed := func(o *Observation) { o.Period, o.Applied = 1, now.Add(-time.Hour) }
	waits := func(o *Observation) { o.Postponed = true }
	for _, test := range []struct {
		name  string
		o     Observation
		state State
		step  Step
	}{
		{"in sync otherwise", guarded(deployed, isUntrusted), StateUnmanaged, StepUpgrade},
		{"drifted", guarded(deployed, isUntrusted, damaged), StateUnmanaged, StepUpgrade},
		{"the upgrade has failed", guarded(deployed, isUntrusted, damaged, failedTo(ofSpec, 1, 0)), StateUnmanaged, StepWait},
		{"held", guarded(old, isUntrusted, heldAt(1)), StateHeld, StepWait},
		{"held and drifted", guarded(old, isUntrusted, heldAt(1), damaged), StateHeld, StepWait},
		{"held and to be verified", guarded(old, isUntrusted, heldAt(1), asksToVerify, passed), StateHeld, StepWait},
		{"held and to be tested", guarded(old, isUntrusted, heldAt(1), asksForTests), StateHeld, StepWait},
		{"held until the spec was edited", guarded(old, isUntrusted, heldAt(1), specEdited), StateUnmanaged, StepUpgrade},
		{"postponed and drifted", guarded(old, isUntrusted, waits, damaged, passed), StatePostponed, StepWait},
		{"invalid and drifted", guarded(old, isUntrusted, isInvalid, damaged), StateInvalid, StepWait},
		{"held, and signed before it is tested", guarded(old, isUnsigned, heldAt(1), asksForTests), StateUnsigned, StepSign},
		{"postponed and not signed", guarded(old, isUnsigned, waits), StateUnsigned, StepSign},
		{"an upgrade comes before a signature", guarded(old, isUnsigned), StateOutOfSync, StepUpgrade},
		{"a repair comes before a signature", guarded(deployed, isUnsigned, damaged), StateDrifted, StepRepair},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := Next(test.o); got.State != test.state || got.Step != test.step {
				t.Errorf("%+v, want state %s and step %s", got, test.state, test.step)
			}
		})
	}
}
