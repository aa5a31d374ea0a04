package plan

import (
	"testing"
	"time"

	"github.com/chartwright/chartwright/internal/api"
)

// TestNext_InterruptsHooks tests which changes end an action, by the state of the hook
// that it waits for.
func TestNext_InterruptsHooks(t *testing.T) {
	const none = api.HookState("")
	states := []api.HookState{none, api.HookStarting, api.HookRunning, api.HookStuck, api.HookCrashing}
	idle := []api.HookState{api.HookStuck, api.HookCrashing}
	inAny := states[1:]
	for _, test := range []struct {
		name   string
		change Change
		with   func(*Observation)
		// ends are the hook states that end the action.
		ends []api.HookState
	}{
		{"nothing", ChangeNone, nil, nil},
		{"a write of the scale field", ChangeScale, nil, nil},
		{"an edit", ChangeEdit, nil, idle},
		{"an edit that makes the spec invalid", ChangeEdit, isInvalid, nil},
		{"an edit during a pause", ChangeEdit, isPaused, nil},
		{"a rollback request", ChangeRollback, nil, idle},
		{"an edit while a dependency is not ready", ChangeEdit, waits, nil},
		{"a rollback request under an invalid spec", ChangeRollback, isInvalid, idle},
		{"a rollback request during a pause", ChangeRollback, isPaused, nil},
		{"hooks are disabled", ChangeHooksDisabled, nil, idle},
		{"hooks are disabled during a pause", ChangeHooksDisabled, isPaused, nil},
		{"a deletion", ChangeDeletion, beingDeleted, idle},
		{"a deletion during a pause", ChangeDeletion, func(o *Observation) { isPaused(o); beingDeleted(o) }, idle},
		{"a deletion during a pause that includes it", ChangeDeletion, func(o *Observation) { beingDeleted(o); deletionIsPaused(o) }, nil},
		{"an abort", ChangeAbort, nil, inAny},
		{"an abort during a pause", ChangeAbort, isPaused, inAny},
		{"an abort under an invalid spec", ChangeAbort, isInvalid, inAny},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, step := range []Step{StepInstall, StepUpgrade, StepRollback, StepUninstall, StepTest} {
				for _, state := range states {
					o := guarded(running(step))
					o.Change = test.change
					if test.with != nil {
						test.with(&o)
					}
					if state != none {
						o.Running.Hook = &Hook{Name: "Job default/web", State: state}
					}
					want := Decision{State: StateBusy, Step: StepWait}
					for _, ends := range test.ends {
						if state == ends {
							want.Step, want.Change = StepInterrupt, test.change
						}
					}
					if got := Next(o); got != want {
						t.Errorf("%s waits for a hook that is %q: got %+v, want %+v", step, state, got, want)
					}
				}
			}
		})
	}
}

// TestNext_AbortedActionWaitsForNewInput: an abort survives a restart, because it
// depends on the record and the annotation only.
func TestNext_AbortedActionWaitsForNewInput(t *testing.T) {
	aborts := func(revision int) func(*Observation) { return func(o *Observation) { o.Abort = revision } }
	stopped := newest(3, api.StatusFailed, desired)
	for _, test := range []struct {
		name  string
		o     Observation
		state State
		step  Step
	}{
		{"an upgrade", guarded(stopped, aborts(3)), StateAborted, StepWait},
		{"an upgrade that failed before", guarded(stopped, aborts(3), failedTo(ofSpec, 1, time.Hour)), StateAborted, StepWait},
		{"a first install", guarded(newest(1, api.StatusFailed, desired), aborts(1)), StateAborted, StepWait},
		{"a rollback", guarded(newest(3, api.StatusFailed, "another"), heldAt(1), aborts(3)), StateAborted, StepWait},
		{"a retry request changes no input", guarded(stopped, aborts(3), retryRequested), StateAborted, StepWait},
		{"the annotation is removed", guarded(stopped), StateFailed, StepUpgrade},
		{"another revision", guarded(stopped, aborts(2)), StateFailed, StepUpgrade},
		{"the spec is edited", guarded(newest(3, api.StatusFailed, "another"), aborts(3)), StateOutOfSync, StepUpgrade},
		{"the spec is edited after a rollback", guarded(newest(3, api.StatusFailed, "another"), heldAt(1), specEdited, aborts(3)), StateOutOfSync, StepUpgrade},
		{"a rollback is requested", guarded(stopped, aborts(3), requestsRollback(1)), StateRollbackRequested, StepRollback},
		{"it is deleted", guarded(stopped, aborts(3), beingDeleted), StateDeleting, StepUninstall},
		{"deployed nevertheless", guarded(newest(3, api.StatusDeployed, desired), aborts(3)), StateInSync, StepWait},
		{"the process ended before the record was written", guarded(newest(3, api.StatusPendingUpgrade, desired), aborts(3)), StateLocked, StepUnlock},
		{"revision of the helm CLI", guarded(newest(3, api.StatusFailed, desired), byAnotherProgram, aborts(3)), StateUnmanaged, StepUpgrade},
		{"the delete hooks", guarded(newest(3, api.StatusDeployed, desired), beingDeleted, func(o *Observation) { o.AbortUninstall = true }), StateAborted, StepWait},
		{"the delete hooks, orphan requested", guarded(newest(3, api.StatusDeployed, desired), beingDeleted, func(o *Observation) { o.AbortUninstall, o.Orphan = true, true }), StateDeleting, StepOrphan},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := Next(test.o); got.State != test.state || got.Step != test.step {
				t.Errorf("%+v, want state %s and step %s", got, test.state, test.step)
			}
		})
	}
}
