package reconcile

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/customresource"
	"github.com/chartwright/chartwright/internal/helm"
	"github.com/chartwright/chartwright/internal/plan"
)

// errAborted marks an action that a person has aborted.
var errAborted = errors.New("the action was aborted")

// inputs returns what an action begins with.
func (r *Reconciler) inputs(v *view, step plan.Step) plan.Inputs {
	inputs := plan.Inputs{
		Values: r.unscaled(v), Spec: r.specDigest(v), Scaled: v.digests.Values,
		HooksDisabled: v.steered(step).DisableHooks,
	}
	if v.observation.Request != nil {
		inputs.Request = v.observation.Request.Token
	}
	return inputs
}

// unscaled returns the digest of the values without the field of the scale
// subresource, whoever has written it.
func (r *Reconciler) unscaled(v *view) string {
	if v.facts != nil {
		return v.facts.unscaled
	}
	return r.withoutScale(v.values)
}

// withoutScale returns the digest of values without the field of the scale
// subresource, whoever has written it.
func (r *Reconciler) withoutScale(given map[string]any) string {
	path := r.Kind.ScalePath()
	if len(path) < 2 {
		return values.Digest(given)
	}
	given = values.Normalize(given)
	remove(given, path[1:])
	return values.Digest(given)
}

// observeChange finds out what people have changed since the running action
// began, and what they abort.
func (r *Reconciler) observeChange(v *view) {
	o := &v.observation
	if revision, err := strconv.Atoi(v.asks.Abort); err == nil {
		o.Abort = revision
	}
	deleteHooks := r.Kind.Chart != nil && r.Kind.Chart.Features.DeleteHooks && !v.asks.Uninstall.DisableHooks
	o.AbortUninstall = v.asks.Abort == api.AbortUninstall && deleteHooks
	if o.Running != nil && o.Running.Hook != nil {
		o.Change = r.change(v, o.Running)
	}
}

// change compares what a running action began with to what there is now.
func (r *Reconciler) change(v *view, running *plan.Running) plan.Change {
	o := v.observation
	began, now := running.Inputs, r.inputs(v, running.Step)
	uninstalls := running.Step == plan.StepUninstall
	// A hold, and a rollback that leads to one, follow no values but the spec's end.
	edited := began.Values != now.Values
	if running.Step == plan.StepRollback || o.Held != nil && !o.Held.Over {
		edited = began.Spec != now.Spec
	}
	switch {
	case v.asks.Abort != "" && v.asks.Abort == abortValue(v, running.Step):
		return plan.ChangeAbort
	case o.Deleting && !uninstalls:
		return plan.ChangeDeletion
	case now.HooksDisabled && !began.HooksDisabled:
		return plan.ChangeHooksDisabled
	case o.Deleting, uninstalls:
		return plan.ChangeNone
	case o.Request != nil && o.Request.Token != began.Request && answerable(o.Request, running.Step):
		return plan.ChangeRollback
	case o.Invalid != "":
		return plan.ChangeNone
	case edited:
		return plan.ChangeEdit
	case began.Scaled != now.Scaled:
		if e, known := customresource.EditsOf(v.cr); known && e.Scale {
			return plan.ChangeEdit
		}
		return plan.ChangeScale
	default:
		return plan.ChangeNone
	}
}

// answerable reports whether the answer to a rollback request changes what runs.
func answerable(request *plan.Request, step plan.Step) bool {
	if request.Resume {
		return step == plan.StepRollback
	}
	return request.Revision > 0 && !request.Over
}

// interruption returns why an action ends that waits for a hook.
func interruption(change plan.Change, hook plan.Hook) error {
	switch change {
	case plan.ChangeAbort:
		return interrupted{text: fmt.Sprintf("aborted, as the annotation %s asks", api.AnnotationAbort), marks: []error{helm.ErrInterrupted, errAborted}}
	case plan.ChangeDeletion:
		return interruptedSince("the custom resource is being deleted", hook)
	case plan.ChangeRollback:
		return interruptedSince("a rollback was requested", hook)
	case plan.ChangeHooksDisabled:
		return interruptedSince("an annotation disables hooks", hook)
	default:
		return interruptedSince("the spec was edited", hook)
	}
}

func interruptedSince(what string, hook plan.Hook) error {
	return interrupted{text: fmt.Sprintf("interrupted, since %s. %s", what, stuck(&hook)), marks: []error{helm.ErrInterrupted}}
}

// interrupted is the error of an action that was interrupted.
type interrupted struct {
	text  string
	marks []error
}

func (i interrupted) Error() string { return i.text }

func (i interrupted) Unwrap() []error { return i.marks }
