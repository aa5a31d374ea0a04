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

// shell runs commands as a user does in a terminal with the environment that
// `make run` prints.
type shell struct {
	// path is $PATH.
	path string
	// kubeconfig is $KUBECONFIG; empty means unchanged.
	kubeconfig string
}

// commandError is the error of a failed command, with its output.
type commandError struct {
	output string
	err    error
}

func (e *commandError) Error() string { return fmt.Sprintf("%v\n%s", e.err, indent(e.output)) }
func (e *commandError) Unwrap() error { return e.err }

// run runs a shell command and returns its output. The error is a commandError.
func (s shell) run(ctx context.Context, line string) (string, error) {
	return s.pipe(ctx, nil, line)
}

// pipe runs a shell command with a standard input.
func (s shell) pipe(ctx context.Context, input []byte, line string) (string, error) {
	cmd := exec.CommandContext(ctx, "sh", "-c", line) //nolint:gosec // the commands are part of this program
	cmd.Env = append(os.Environ(), "PATH="+s.path)
	if s.kubeconfig != "" {
		cmd.Env = append(cmd.Env, "KUBECONFIG="+s.kubeconfig)
	}
	cmd.Stdin = bytes.NewReader(input)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	// An interrupted command can clean up.
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

// refusal returns the output of a failed command. It returns an error for a
// command that succeeded.
func refusal(err error) (string, error) {
	var failed *commandError
	switch {
	case err == nil:
		return "", errors.New("the command was accepted, want a refusal")
	case errors.As(err, &failed):
		return failed.output, nil
	default:
		return "", err
	}
}
