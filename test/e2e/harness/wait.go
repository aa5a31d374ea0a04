package harness

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// deadline is much longer than any wait takes, even on a busy machine, and even
	// of the garbage collector: it lists all kinds every 30 seconds, and starts over
	// if tests delete CRDs at that moment.
	deadline = 10 * time.Minute
	interval = 100 * time.Millisecond
)

// Timeout is a flag of kubectl and helm with the deadline of all waits.
var Timeout = "--timeout=" + deadline.String()

// Wait waits until check returns nil. If the deadline passes, the test fails
// with the last error of check.
func (e *Env) Wait(what string, check func(context.Context) error) {
	e.t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(e.t.Context(), deadline)
	defer cancel()
	var last error
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		if ctx.Err() == nil {
			last = err
		}
		// Long waits poll less often: the polls of all tests load the API server.
		select {
		case <-time.After(min(max(interval, time.Since(began)/5), 2*time.Second)):
		case <-ctx.Done():
			e.t.Fatalf("waited %s for %s: %v", time.Since(began).Round(time.Second), what, errors.Join(last, e.t.Context().Err()))
		}
	}
}

// Consistently calls check for the whole duration and fails the test at its
// first error.
func (e *Env) Consistently(what string, duration time.Duration, check func(context.Context) error) {
	e.t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(e.t.Context(), duration)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, 2*interval, true, func(context.Context) (bool, error) {
		return false, check(e.t.Context())
	})
	if err != nil && !wait.Interrupted(err) {
		e.t.Fatalf("after %s, not %s: %v", time.Since(began).Round(time.Second/10), what, err)
	}
}
