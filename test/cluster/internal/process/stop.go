package process

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
)

// pollEvery is the interval at which a terminating process is checked. It is
// usually not a child of the caller, so the caller cannot wait for it.
const pollEvery = 20 * time.Millisecond

// killTimeout is the time for the kernel to end a killed process.
const killTimeout = 10 * time.Second

// Stop terminates a process and its group, and kills them if they are still running after the grace period. A process that is not running is not an error.
func Stop(ctx context.Context, ref Ref, grace time.Duration) error {
	for _, step := range []struct {
		signal  syscall.Signal
		atLeast time.Duration
	}{{syscall.SIGTERM, grace}, {syscall.SIGKILL, killTimeout}} {
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
	return fmt.Errorf("process %d did not exit, even after SIGKILL", ref.PID)
}

// Kill ends a process and its group immediately. A process that is not running
// is not an error.
func Kill(ctx context.Context, ref Ref) error {
	running, err := ref.Running()
	if err != nil || !running {
		return err
	}
	if err := signalGroup(ref.PID, syscall.SIGKILL); err != nil {
		return err
	}
	gone, err := waitGone(ctx, ref, killTimeout)
	if err == nil && !gone {
		err = fmt.Errorf("process %d did not exit after SIGKILL", ref.PID)
	}
	return err
}

// signalGroup signals the process group that Start created for the process.
func signalGroup(pid int, signal syscall.Signal) error {
	if err := syscall.Kill(-pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("cannot send %s to process %d: %w", signal, pid, err)
	}
	return nil
}

// waitGone reports whether the process exited within the given time.
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
