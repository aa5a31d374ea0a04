package reconcile

import (
	"context"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/helm"
	"github.com/chartwright/chartwright/internal/plan"
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

// HookReport is how far a hook is, and why it is no farther.
type HookReport struct {
	State api.HookState
	Why   string
}

// hookWait follows a hook that an action waits for. One goroutine, run, owns all
// but the channels.
type hookWait struct {
	name string
	// look reads how far the hook is, report passes it on, and end ends the wait.
	look   func(context.Context) (HookReport, error)
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
func (r *Reconciler) waitForHook(v *view, wait helm.HookWait, redact func(string) string) func(failed bool) string {
	ctx, stop := context.WithCancel(context.Background())
	w := &hookWait{
		name: wait.Hook.String(), end: wait.End, now: r.Now, stop: stop,
		changes: make(chan plan.Change, 1), ended: make(chan struct{}), known: map[api.HookState]bool{},
	}
	w.again = func() { r.Wake(v.key, nextHookLook) }
	w.look = func(ctx context.Context) (HookReport, error) {
		ctx, cancel := context.WithTimeout(ctx, visit)
		defer cancel()
		report, err := r.Hook(ctx, wait.Hook, wait.UID)
		report.Why = redact(report.Why)
		return report, err
	}
	w.report = func(hook *plan.Hook, isNew bool) {
		r.Pool.hook(v.release, hook, w.interrupt)
		if isNew && hook.State.Idle() {
			r.Recorder.Event(v.cr, corev1.EventTypeWarning, api.EventHookStuck, cut(stuck(hook)))
		}
		r.Wake(v.key, 0)
	}
	r.Pool.hook(v.release, &plan.Hook{Name: w.name}, w.interrupt)
	// A change may have come before the hook was there to be interrupted.
	r.Wake(v.key, 0)
	go w.run(ctx)
	return func(failed bool) string {
		stop()
		<-w.ended
		r.Pool.hook(v.release, nil, nil)
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

// stuck says what keeps a hook from running.
func stuck(hook *plan.Hook) string {
	if hook.State == api.HookCrashing {
		return fmt.Sprintf("Hook %s fails again and again: %s", hook.Name, hook.Why)
	}
	return fmt.Sprintf("Hook %s cannot start: %s", hook.Name, hook.Why)
}

// hookMessage says what a running action waits for, and which change waits with
// it; empty where it waits for no hook.
func hookMessage(v *view) string {
	running := v.observation.Running
	if running == nil || running.Hook == nil || running.Hook.State == "" {
		return ""
	}
	hook := running.Hook
	var text string
	switch {
	case hook.State.Idle():
		text = ". " + stuck(hook)
	case hook.State == api.HookRunning && hook.Why == "":
		text = fmt.Sprintf(". It waits for hook %s, which runs", hook.Name)
	case hook.Why != "":
		text = fmt.Sprintf(". It waits for hook %s: %s", hook.Name, hook.Why)
	default:
		text = fmt.Sprintf(". It waits for hook %s", hook.Name)
	}
	text = v.secrets.Redact(text)
	what, waits := waiters[v.observation.Change]
	abort := abortValue(v, running.Step)
	if !waits || hook.State.Idle() || abort == "" {
		return text
	}
	return fmt.Sprintf("%s. %s waits until the hook ends. To end the hook now, also if it is at work, set the annotation %s to %q", text, what, api.AnnotationAbort, abort)
}

// waiters names the changes that wait for a hook.
var waiters = map[plan.Change]string{
	plan.ChangeEdit:          "The edit of the spec",
	plan.ChangeDeletion:      "The deletion",
	plan.ChangeRollback:      "The rollback request",
	plan.ChangeHooksDisabled: "The annotation that disables hooks",
}

// abortValue is what the annotation that aborts a running action has to be.
func abortValue(v *view, step plan.Step) string {
	switch {
	case step == plan.StepUninstall:
		return api.AbortUninstall
	case step == plan.StepTest:
		return api.AbortTest
	case v.observation.Newest == nil || !api.Pending(v.observation.Newest.Status):
		return ""
	default:
		return strconv.Itoa(v.observation.Newest.Number)
	}
}
