package harness

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// deadline is far beyond what anything here takes, also on a machine with
	// much else to do.
	deadline = 2 * time.Minute
	interval = 50 * time.Millisecond
)

// Wait waits until look returns nil; its error says what is missing, and is
// printed where the deadline passes.
func (e *Env) Wait(what string, look func(context.Context) error) {
	e.t.Helper()
	e.WaitLong(what, deadline, look)
}

// WaitLong is Wait with a deadline of its own.
func (e *Env) WaitLong(what string, within time.Duration, look func(context.Context) error) {
	e.t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(e.t.Context(), within)
	defer cancel()
	var last error
	err := wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		err := look(ctx)
		if err != nil && ctx.Err() == nil {
			last = err
		}
		return err == nil, nil
	})
	if err != nil {
		e.t.Fatalf("waited %s for %s: %v", time.Since(began).Round(time.Second), what, errors.Join(last, e.t.Context().Err()))
	}
}

// Consistently looks for as long as given and ends the test at the first error.
func (e *Env) Consistently(what string, duration time.Duration, look func(context.Context) error) {
	e.t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(e.t.Context(), duration)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, 5*interval, true, func(context.Context) (bool, error) {
		return false, look(e.t.Context())
	})
	if err != nil && !wait.Interrupted(err) {
		e.t.Fatalf("after %s, not %s: %v", time.Since(began).Round(time.Second/10), what, err)
	}
}
