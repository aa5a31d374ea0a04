package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/customresource"
	"github.com/chartwright/chartwright/internal/helm"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/reconcile/status"
)

// When to look at a hook that an action waits for. Most hooks end before the
// first look; each look takes three or four requests.
const (
	firstHookLook = 3 * time.Second
	nextHookLook  = 10 * time.Second
	// newsAfter is how old the last report is before another reason for the same
	// state is reported. Kubelets alternate between two words for one reason, and
	// each report writes the status.
	newsAfter = time.Minute
)

// hookWait follows a hook that an action waits for. One goroutine, run, owns all
// but the channels.
type hookWait struct {
	name string
	// look reads how far the hook is, report passes it on, and end ends the wait.
	look   func(context.Context) (plan.Hook, error)
	report func(hook *plan.Hook, isNew bool)
	end    context.CancelCauseFunc
	// again has the change decided on once more, later.
	again func()
	now   func() time.Time

	changes chan plan.Change
	stop    context.CancelFunc
	ended   chan struct{}

	last     plan.Hook
	reported time.Time
	known    map[api.HookState]bool
}

// waitForHook follows a hook until the function that it returns is called. That
// one returns why the hook has failed, if it did.
func (r *Reconciler) waitForHook(v *snapshot, wait helm.HookWait, redact func(string) string) func(failed bool) string {
	ctx, stop := context.WithCancel(context.Background())
	w := &hookWait{
		name: wait.Hook.String(), end: wait.End, now: r.Now, stop: stop,
		changes: make(chan plan.Change, 1), ended: make(chan struct{}), known: map[api.HookState]bool{},
	}
	w.again = func() { r.Wake(v.key, nextHookLook) }
	w.look = func(ctx context.Context) (plan.Hook, error) {
		ctx, cancel := context.WithTimeout(ctx, visit)
		defer cancel()
		state, why, err := r.Hook(ctx, wait.Hook, wait.UID)
		return plan.Hook{State: state, Why: redact(why)}, err
	}
	w.report = func(hook *plan.Hook, isNew bool) {
		r.Pool.SetHook(v.Release, hook, w.interrupt)
		if isNew && hook.State.Idle() {
			r.Recorder.Event(v.CR, corev1.EventTypeWarning, api.EventHookStuck, status.Cut(status.StuckHook(hook)))
		}
		r.Wake(v.key, 0)
	}
	r.Pool.SetHook(v.Release, &plan.Hook{Name: w.name}, w.interrupt)
	// A change may have come before the hook was there to be interrupted.
	r.Wake(v.key, 0)
	go w.run(ctx)
	return func(failed bool) string {
		stop()
		<-w.ended
		r.Pool.SetHook(v.Release, nil, nil)
		return w.why(failed)
	}
}

// interrupt has the hook looked at, and the wait ended if the change does that. A
// change that came before, and was not looked at yet, counts no more.
func (w *hookWait) interrupt(change plan.Change) {
	for {
		select {
		case w.changes <- change:
			return
		default:
		}
		select {
		case <-w.changes:
		default:
		}
	}
}

// run looks at the hook now and then, and whenever there is a change that may
// end it, until the context ends.
func (w *hookWait) run(ctx context.Context) {
	defer close(w.ended)
	w.last.Name = w.name
	timer := time.NewTimer(firstHookLook)
	defer timer.Stop()
	for {
		var change plan.Change
		select {
		case <-ctx.Done():
			return
		case change = <-w.changes:
		case <-timer.C:
		}
		if change == plan.ChangeAbort {
			w.end(interruption(change, w.last))
			return
		}
		// Between the last look and the change the container may have started.
		switch seen := w.visit(ctx); {
		case seen && plan.Interrupts(change, w.last.State):
			w.end(interruption(change, w.last))
			return
		case !seen && change != plan.ChangeNone:
			w.again()
		}
		timer.Reset(nextHookLook)
	}
}

// visit looks at the hook, and reports what is new. It returns false where the
// API server did not answer.
func (w *hookWait) visit(ctx context.Context) bool {
	seen, err := w.look(ctx)
	if err != nil {
		return false
	}
	moved := seen.State != w.last.State
	if !moved && (seen.Why == w.last.Why || w.now().Sub(w.reported) < newsAfter) {
		return true
	}
	w.last.State, w.last.Why, w.reported = seen.State, seen.Why, w.now()
	isNew := !w.known[seen.State]
	w.known[seen.State] = true
	w.report(new(w.last), isNew)
	return true
}

// why returns why the hook has failed. Where it was active for too long its pods
// are gone by then, and the last look before counts.
func (w *hookWait) why(failed bool) string {
	if !failed {
		return ""
	}
	seen, err := w.look(context.Background())
	if err == nil && seen.Why != "" && (seen.State.Idle() || w.last.Why == "") {
		return seen.Why
	}
	return w.last.Why
}

// errAborted marks an action that a person has aborted.
var errAborted = errors.New("the action was aborted")

// inputs returns what an action begins with.
func (r *Reconciler) inputs(v *snapshot, step plan.Step) plan.Inputs {
	inputs := plan.Inputs{Scaled: v.digests.Values, HooksDisabled: v.steered(step).DisableHooks}
	inputs.Spec, _ = r.specAndScale(v)
	if v.facts != nil {
		inputs.Values = v.facts.unscaled
	}
	if v.Observation.Request != nil {
		inputs.Request = v.Observation.Request.Token
	}
	return inputs
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
func (r *Reconciler) observeChange(v *snapshot) {
	o := &v.Observation
	if revision, err := strconv.Atoi(v.Requests.Abort); err == nil {
		o.Abort = revision
	}
	deleteHooks := r.Kind.Chart != nil && r.Kind.Chart.Features.DeleteHooks && !v.steered(plan.StepUninstall).DisableHooks
	o.AbortUninstall = v.Requests.Abort == api.AbortUninstall && deleteHooks
	if o.Running != nil && o.Running.Hook != nil {
		o.Change = r.change(v, o.Running)
	}
}

// change compares what a running action began with to what there is now.
func (r *Reconciler) change(v *snapshot, running *plan.Running) plan.Change {
	o := v.Observation
	began, now := running.Inputs, r.inputs(v, running.Step)
	uninstalls := running.Step == plan.StepUninstall
	// A hold, and a rollback that leads to one, follow no values but the spec's end.
	edited := began.Values != now.Values
	if running.Step == plan.StepRollback || o.Holding() {
		edited = began.Spec != now.Spec
	}
	switch {
	case v.Requests.Abort != "" && v.Requests.Abort == status.AbortValue(&v.Snapshot, running.Step):
		return plan.ChangeAbort
	case o.Deleting && !uninstalls:
		return plan.ChangeDeletion
	case now.HooksDisabled && !began.HooksDisabled:
		return plan.ChangeHooksDisabled
	case o.Deleting, uninstalls:
		return plan.ChangeNone
	case o.Request != nil && o.Request.Token != began.Request && answerable(o.Request, running.Step):
		return plan.ChangeRollback
	case o.Invalid != nil:
		return plan.ChangeNone
	case edited:
		return plan.ChangeEdit
	case began.Scaled != now.Scaled:
		if e, known := customresource.EditsOf(v.CR); known && e.Scale {
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
	return request.Revision > 0 && !request.Expired
}

// interruptions describes the changes that interrupt an action.
var interruptions = map[plan.Change]string{
	plan.ChangeDeletion:      "the custom resource is being deleted",
	plan.ChangeRollback:      "a rollback was requested",
	plan.ChangeHooksDisabled: "an annotation disables hooks",
	plan.ChangeEdit:          "the spec was edited",
}

// interruption returns why an action ends that waits for a hook.
func interruption(change plan.Change, hook plan.Hook) error {
	if change == plan.ChangeAbort {
		return interrupted{text: fmt.Sprintf("aborted by the annotation %s", api.AnnotationAbort), marks: []error{helm.ErrInterrupted, errAborted}}
	}
	return interrupted{text: fmt.Sprintf("interrupted, because %s. %s", interruptions[change], status.StuckHook(&hook)), marks: []error{helm.ErrInterrupted}}
}

// interrupted is the error of an action that was interrupted.
type interrupted struct {
	text  string
	marks []error
}

func (i interrupted) Error() string { return i.text }

func (i interrupted) Unwrap() []error { return i.marks }
