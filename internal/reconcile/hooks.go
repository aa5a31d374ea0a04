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

// The times between checks of a hook that an action waits for. Most hooks end before
// the first check, which takes three or four requests.
const (
	firstHookCheck = 3 * time.Second
	nextHookCheck  = 10 * time.Second
	// newsAfter is the minimum time between two reports with the same state and
	// different reasons. Kubelets alternate between two reasons for one cause, and each
	// report patches the status.
	newsAfter = time.Minute
)

// hookWait observes a hook that an action waits for. Only the goroutine of run uses the
// fields, except for the channels.
type hookWait struct {
	name string
	// read reads the state of the hook, report reports it, and end ends the wait.
	read   func(context.Context) (plan.Hook, error)
	report func(hook *plan.Hook, isNew bool)
	end    context.CancelCauseFunc
	// again reconciles the custom resource later, which sends the change again.
	again func()

	changes chan plan.Change
	stop    context.CancelFunc
	ended   chan struct{}

	last     plan.Hook
	reported time.Time
	known    map[api.HookState]bool
}

// waitForHook observes a hook until the returned function is called, which returns why
// the hook has failed, if it has.
func (r *Reconciler) waitForHook(v *snapshot, wait helm.HookWait, redact func(string) string) func(failed bool) string {
	ctx, stop := context.WithCancel(context.Background())
	w := &hookWait{
		name: wait.Hook.String(), end: wait.End, stop: stop,
		changes: make(chan plan.Change, 1), ended: make(chan struct{}), known: map[api.HookState]bool{},
	}
	w.again = func() { r.Wake(v.key, nextHookCheck) }
	w.read = func(ctx context.Context) (plan.Hook, error) {
		ctx, cancel := context.WithTimeout(ctx, diagnosisTimeout)
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
	// A change that was detected before this call must be decided on now.
	r.Wake(v.key, 0)
	go w.run(ctx)
	return func(failed bool) string {
		stop()
		<-w.ended
		r.Pool.SetHook(v.Release, nil, nil)
		return w.why(failed)
	}
}

// interrupt makes run check the hook, and end the wait if the change interrupts it. A
// previous change that run did not receive yet is dropped.
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

// run checks the hook periodically and after each change, until the context ends.
func (w *hookWait) run(ctx context.Context) {
	defer close(w.ended)
	w.last.Name = w.name
	timer := time.NewTimer(firstHookCheck)
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
		// The container may have started since the last check.
		switch checked := w.check(ctx); {
		case checked && plan.Interrupts(change, w.last.State):
			w.end(interruption(change, w.last))
			return
		case !checked && change != plan.ChangeNone:
			w.again()
		}
		timer.Reset(nextHookCheck)
	}
}

// check reads the state of the hook, and reports a change. It returns false if the
// state could not be read.
func (w *hookWait) check(ctx context.Context) bool {
	seen, err := w.read(ctx)
	if err != nil {
		return false
	}
	moved := seen.State != w.last.State
	if !moved && (seen.Why == w.last.Why || time.Since(w.reported) < newsAfter) {
		return true
	}
	w.last.State, w.last.Why, w.reported = seen.State, seen.Why, time.Now()
	isNew := !w.known[seen.State]
	w.known[seen.State] = true
	w.report(new(w.last), isNew)
	return true
}

// why returns why the hook has failed. If it exceeded its deadline, its pods are
// deleted already, and the result is that of the last check.
func (w *hookWait) why(failed bool) string {
	if !failed {
		return ""
	}
	seen, err := w.read(context.Background())
	if err == nil && seen.Why != "" && (seen.State.Idle() || w.last.Why == "") {
		return seen.Why
	}
	return w.last.Why
}

// errAborted marks an action that a user has aborted.
var errAborted = errors.New("the action was aborted")

// inputs returns the inputs of an action.
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
// subresource.
func (r *Reconciler) withoutScale(given map[string]any) string {
	path := r.Kind.ScalePath()
	if len(path) < 2 {
		return values.Digest(given)
	}
	given = values.Normalize(given)
	remove(given, path[1:])
	return values.Digest(given)
}

// observeChange observes what users have changed since the running action began, and
// what they abort.
func (r *Reconciler) observeChange(v *snapshot) {
	o := &v.Observation
	if revision, err := strconv.Atoi(v.Requests.Abort); err == nil {
		o.Abort = revision
	}
	hooks := deleteHooks(r.Kind) && !v.steered(plan.StepUninstall).DisableHooks
	o.AbortUninstall = v.Requests.Abort == api.AbortUninstall && hooks
	if o.Running != nil && o.Running.Hook != nil {
		o.Change = r.change(v, o.Running)
	}
}

// change compares the inputs of a running action with the current ones.
func (r *Reconciler) change(v *snapshot, running *plan.Running) plan.Change {
	o := v.Observation
	began, now := running.Inputs, r.inputs(v, running.Step)
	uninstalls := running.Step == plan.StepUninstall
	// During a hold or a rollback, changed sources do not matter, only edits of the spec.
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

// answerable reports whether the answer to a rollback request changes the release.
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

// interruption returns the error of an action whose wait for a hook is ended by a change.
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
