package plan

import (
	"testing"
	"time"

	"github.com/chartwright/chartwright/internal/api"
)

// isUntrusted marks the newest record as not authenticated.
func isUntrusted(o *Observation) { o.Newest.Untrusted = true }

// isUnsigned marks the newest record as not signed with the current key.
func isUnsigned(o *Observation) { o.Unsigned = true }

func TestChain_Unsigned(t *testing.T) {
	deployed := newest(1, api.StatusDeployed, desired)
	runCheck(t, "unsigned", []expect{
		{"signed", guarded(deployed), nil},
		{"not signed", guarded(deployed, isUnsigned), &Decision{State: StateUnsigned, Step: StepSign}},
		{"not signed, write failed recently", guarded(deployed, isUnsigned, failedTo(TargetKey{Goal: GoalSigned}, 1, 0)), &Decision{State: StateUnsigned, Step: StepWait, After: time.Second}},
		{"not signed, not authenticated", guarded(deployed, isUnsigned, isUntrusted), nil},
		{"not signed, upgraded by another program", guarded(newest(2, api.StatusDeployed, ""), byAnotherProgram, isUnsigned), nil},
	})
}

// TestNext_UntrustedRecord: nothing from a record that is not authenticated is applied.
// The release is upgraded, unless a hold or a rollout prevents it.
func TestNext_UntrustedRecord(t *testing.T) {
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
		{"drifted", guarded(deployed, isUntrusted, drifted), StateUnmanaged, StepUpgrade},
		{"the upgrade has failed", guarded(deployed, isUntrusted, drifted, failedTo(ofSpec, 1, 0)), StateUnmanaged, StepWait},
		{"held", guarded(old, isUntrusted, heldAt(1)), StateHeld, StepWait},
		{"held and drifted", guarded(old, isUntrusted, heldAt(1), drifted), StateHeld, StepWait},
		{"held, verification requested", guarded(old, isUntrusted, heldAt(1), requestsVerification, passed), StateHeld, StepWait},
		{"held, tests requested", guarded(old, isUntrusted, heldAt(1), requestsTests), StateHeld, StepWait},
		{"held until the spec was edited", guarded(old, isUntrusted, heldAt(1), specEdited), StateUnmanaged, StepUpgrade},
		{"postponed and drifted", guarded(old, isUntrusted, waits, drifted, passed), StatePostponed, StepWait},
		{"invalid and drifted", guarded(old, isUntrusted, isInvalid, drifted), StateInvalid, StepWait},
		{"held, and signed before it is tested", guarded(old, isUnsigned, heldAt(1), requestsTests), StateUnsigned, StepSign},
		{"postponed and not signed", guarded(old, isUnsigned, waits), StateUnsigned, StepSign},
		{"an upgrade comes before a signature", guarded(old, isUnsigned), StateOutOfSync, StepUpgrade},
		{"a repair comes before a signature", guarded(deployed, isUnsigned, drifted), StateDrifted, StepRepair},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := Next(test.o); got.State != test.state || got.Step != test.step {
				t.Errorf("%+v, want state %s and step %s", got, test.state, test.step)
			}
		})
	}
}
