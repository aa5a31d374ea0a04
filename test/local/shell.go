package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// shell runs commands as a person would in a terminal that was set up as `make
// run` says.
type shell struct {
	// path is $PATH.
	path string
	// kubeconfig is $KUBECONFIG; as it is when empty.
	kubeconfig string
}

// commandError is a command that failed, with what it had to say.
type commandError struct {
	output string
	err    error
}

func (e *commandError) Error() string { return fmt.Sprintf("%v\n%s", e.err, indent(e.output)) }
func (e *commandError) Unwrap() error { return e.err }

// run runs one line and returns what it printed. The error is a commandError.
func (s shell) run(ctx context.Context, line string) (string, error) {
	return s.pipe(ctx, nil, line)
}

// pipe runs one line with an input.
func (s shell) pipe(ctx context.Context, input []byte, line string) (string, error) {
	cmd := exec.CommandContext(ctx, "sh", "-c", line) //nolint:gosec // the lines are ours
	cmd.Env = append(os.Environ(), "PATH="+s.path)
	if s.kubeconfig != "" {
		cmd.Env = append(cmd.Env, "KUBECONFIG="+s.kubeconfig)
	}
	cmd.Stdin = bytes.NewReader(input)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	// What is cut short gets the chance to clean up.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		return "", &commandError{output: strings.TrimSpace(stdout.String() + stderr.String()), err: err}
	}
	return strings.TrimSpace(stdout.String()), nil
}

// refusal returns what a command said that failed; anything else is an error.
func refusal(err error) (string, error) {
	var failed *commandError
	switch {
	case err == nil:
		return "", errors.New("it was accepted, and should have been refused")
	case errors.As(err, &failed):
		return failed.output, nil
	default:
		return "", err
	}
}
