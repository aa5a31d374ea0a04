package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Root returns the root of the repository, or a path below it.
func Root(path ...string) string {
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "cmd", "chartwright")); err == nil {
			return filepath.Join(append([]string{dir}, path...)...)
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			panic("no cmd/chartwright above the working directory")
		}
		dir = parent
	}
}

// Chart returns the folder of a chart in testdata.
func Chart(name string) string { return Root("test", "e2e", "testdata", "charts", name) }

// program returns the path of a program that the Makefile builds.
func program(path ...string) (string, error) {
	file := Root(append([]string{"bin"}, path...)...)
	if _, err := os.Stat(file); err != nil {
		return "", fmt.Errorf("%w: run 'make cluster-binaries' first", err)
	}
	return file, nil
}

// operatorBinary returns the operator that $CHARTWRIGHT_BINARY names, or builds
// one from the current sources.
func operatorBinary(ctx context.Context, scratch string) (string, error) {
	if file := os.Getenv("CHARTWRIGHT_BINARY"); file != "" {
		if _, err := os.Stat(file); err != nil {
			return "", fmt.Errorf("$CHARTWRIGHT_BINARY: %w", err)
		}
		return filepath.Abs(file)
	}
	file := filepath.Join(scratch, "chartwright")
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-ldflags", "-s -w", "-o", file, "./cmd/chartwright")
	build.Dir = Root()
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the operator: %w\n%s", err, output)
	}
	return file, nil
}

// command is a program with its arguments and its standard input.
type command struct {
	path string
	// as is the name under which the program runs; empty means its own name.
	as    string
	args  []string
	env   []string
	stdin string
}

// shortLived is the environment of programs that end soon. They need a fifth less
// processor time without garbage collection.
func shortLived() []string { return append(os.Environ(), "GOGC=off", "GOMEMLIMIT=512MiB") }

// run returns the program's output, and ends the program at the deadline. Errors
// contain the command line and all output.
func (c command) run(ctx context.Context) (string, error) {
	var stdout, both bytes.Buffer
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.path, c.args...)
	if c.as != "" {
		cmd.Args[0] = c.as
	}
	cmd.Env = append(shortLived(), c.env...)
	cmd.Stdin = strings.NewReader(c.stdin)
	cmd.Stdout = io.MultiWriter(&stdout, &both)
	cmd.Stderr = &both
	if err := cmd.Run(); err != nil {
		line := strings.Join(append([]string{filepath.Base(c.path)}, c.args...), " ")
		return stdout.String(), fmt.Errorf("%s: %w\n%s", line, err, both.String())
	}
	return stdout.String(), nil
}

// exitCode returns the exit code of a command, and whether it ran.
func exitCode(err error) (int, bool) {
	if err == nil {
		return 0, true
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return 0, false
	}
	return exit.ExitCode(), true
}
