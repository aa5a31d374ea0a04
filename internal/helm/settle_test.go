package helm

import (
	"fmt"
	"time"

	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/testenv"
)

// observe returns what the operator would observe about the release of a request.
func (w *world) observe(r Request, deleting bool) plan.Observation {
	w.Helper()
	w.watch()
	now := time.Now()
	o := plan.Observation{Now: now, Deleting: deleting, Finalizer: true, Desired: r.Digests.Input, Failure: w.failed}
	history := w.index.History(w.namespace, r.Release)
	if len(history) > 0 {
		o.Newest = &plan.Revision{
			Number: history[0].Revision, Status: history[0].Status, Owned: history[0].OwnerUID == w.owner.UID,
			WrittenByUs: history[0].Genuine(), Began: now, Timeout: r.Timeout,
		}
		if o.Newest.WrittenByUs {
			o.Newest.Digest = history[0].InputDigest
		}
	}
	if received, marks := r.Marks, release.MarksOf(history); received.Held != nil {
		if marks.Rollback != received.Rollback {
			o.Request = &plan.Request{Token: received.Rollback, Revision: received.Held.Revision}
		}
		if marks.Held != nil {
			o.Held = &plan.Held{Revision: marks.Held.Revision, Token: marks.Rollback}
		}
	}
	return o
}

// take runs the action of a decision. It returns false if the decision is to wait.
func (w *world) take(d plan.Decision, r Request) (acted bool, err error) {
	switch d.Step {
	case plan.StepInstall:
		err = w.helm.Install(w.Context(), r)
	case plan.StepUpgrade:
		err = w.helm.Upgrade(w.Context(), r)
	case plan.StepRollback:
		err = w.helm.Rollback(w.Context(), r, d.Revision)
	case plan.StepUninstall:
		err = w.helm.Uninstall(w.Context(), r)
	case plan.StepVerify:
		err = w.helm.Verify(w.Context(), r)
	case plan.StepAdopt:
		err = w.helm.Adopt(w.Context(), r)
	case plan.StepUnlock:
		err = w.helm.MarkFailed(w.Context(), r, w.index.History(w.namespace, r.Release)[0], "Interrupted")
	default:
		return false, nil
	}
	return true, err
}

// settle runs the actions that the operator would run until the release is in sync. For
// a request with a hold it runs a rollback.
func (w *world) settle(r Request, deleting bool) {
	w.Helper()
	var taken []string
	for range 12 {
		d := plan.Next(w.observe(r, deleting))
		taken = append(taken, fmt.Sprintf("%s→%s", d.State, d.Step))
		acted, err := w.take(d, r)
		if err != nil {
			w.Fatalf("%s failed after %v: %v", d.Step, taken, err)
		}
		if !acted {
			if d.State != plan.StateInSync && d.State != plan.StateHeld && d.State != plan.StateDeleted {
				w.Fatalf("the status is %s after %v", d.State, taken)
			}
			return
		}
	}
	w.Fatalf("the release is not in sync: %v", taken)
}

// ended runs an action, which must end, and returns its error.
func (w *world) ended(action func() error) error {
	w.Helper()
	done := make(chan error, 1)
	go func() { done <- action() }()
	return testenv.Receive(w, "the end of the action", done)
}
