package process

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
)

// pollEvery is how often a process that was asked to end is looked at. It is
// not a child of the caller in general, so it cannot be waited for.
const pollEvery = 20 * time.Millisecond

// Stop asks a process and its group to end, and insists when it has not after
// the grace. A process that no longer runs is no error.
func Stop(ctx context.Context, ref Ref, grace time.Duration) error {
	for _, step := range []struct {
		signal  syscall.Signal
		atLeast time.Duration
	}{{syscall.SIGTERM, grace}, {syscall.SIGKILL, 10 * time.Second}} {
		running, err := ref.Running()
		if err != nil || !running {
			return err
		}
		if err := signalGroup(ref.PID, step.signal); err != nil {
			return err
		}
		if gone, err := waitGone(ctx, ref, step.atLeast); gone || err != nil {
			return err
		}
	}
	return fmt.Errorf("process %d does not end, not even by SIGKILL", ref.PID)
}

// signalGroup signals the group that Start made the process the leader of.
func signalGroup(pid int, signal syscall.Signal) error {
	if err := syscall.Kill(-pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("cannot send %s to process %d: %w", signal, pid, err)
	}
	return nil
}

// waitGone reports whether the process ended within the given time.
func waitGone(ctx context.Context, ref Ref, within time.Duration) (bool, error) {
	deadline := time.After(within)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		running, err := ref.Running()
		if err != nil || !running {
			return err == nil, err
		}
		select {
		case <-tick.C:
		case <-deadline:
			return false, nil
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}
