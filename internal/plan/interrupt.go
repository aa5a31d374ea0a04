package plan

import "github.com/chartwright/chartwright/internal/api"

// Inputs are what an action began with, by which a later change is recognized.
type Inputs struct {
	// Values and Spec are digests of the values and of the spec, both without the
	// field of the scale subresource. Scaled is a digest of the values with it.
	Values, Spec, Scaled string
	// Request is the token of the rollback request that was not answered yet.
	Request string
	// HooksDisabled: an annotation disables the action's hooks.
	HooksDisabled bool
}

// Hook is a hook that an action waits for.
type Hook struct {
	// Name is that of the object: "Job default/web-pre-upgrade".
	Name  string
	State api.HookState
	// Why is what keeps the hook from ending, in a sentence; empty where it runs.
	Why string
}

// Change is what people have changed since the running action began.
type Change string

// The changes. Where several have come, the first of them counts.
const (
	ChangeNone Change = ""
	// ChangeAbort: an annotation aborts the action.
	ChangeAbort Change = "Abort"
	// ChangeDeletion: the custom resource is being deleted.
	ChangeDeletion Change = "Deletion"
	// ChangeHooksDisabled: an annotation disables the hooks of the action.
	ChangeHooksDisabled Change = "HooksDisabled"
	// ChangeRollback: an annotation asks for an earlier revision, or for the end of
	// the hold that the action brings about.
	ChangeRollback Change = "Rollback"
	// ChangeEdit: the values are others.
	ChangeEdit Change = "Edit"
	// ChangeScale: the values differ in the field of the scale subresource alone.
	ChangeScale Change = "Scale"
)

// Interrupts reports whether a change ends an action that waits for a hook in
// this state. A hook whose container runs, or is about to, may be a migration or
// a dump: only a person ends it.
func Interrupts(change Change, hook api.HookState) bool {
	switch change {
	case ChangeAbort:
		return true
	case ChangeDeletion, ChangeHooksDisabled, ChangeRollback, ChangeEdit:
		return hook.Idle()
	default:
		return false
	}
}

// busy leaves a running action alone, unless it waits in vain for a hook and
// there is something else to do.
func busy(o Observation) (Decision, bool) {
	d := Decision{State: StateBusy, Step: StepWait}
	if o.Running == nil {
		return d, false
	}
	if hook := o.Running.Hook; hook != nil && Interrupts(o.Change, hook.State) && o.follows(o.Change) {
		d.Step, d.Change = StepInterrupt, o.Change
	}
	return d, true
}

// follows reports whether a change would be acted upon once nothing runs.
func (o Observation) follows(change Change) bool {
	switch change {
	case ChangeAbort:
		return true
	case ChangeDeletion:
		return !o.PausedDeletion
	case ChangeEdit:
		return !o.Paused && o.Invalid == ""
	default:
		return !o.Paused
	}
}

// aborted leaves alone what a person has aborted. It is told by the record and
// the annotation, so that it survives a restart. An edit makes another revision,
// and so does a rollback.
func aborted(o Observation) (Decision, bool) {
	if o.Abort == 0 || !o.stored() || o.Newest.Number != o.Abort {
		return Decision{}, false
	}
	failed := o.Newest.Genuine && o.Newest.Status == api.StatusFailed
	return Decision{State: StateAborted, Step: StepWait}, failed && (o.holding() || o.Newest.Digest == o.Desired)
}
