package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// stopLimit is longer than the shutdown timeout of operators.
	stopLimit = 45 * time.Second
	tailLines = 25
)

// subject is the measured program, which serves a watches file, and its running
// process.
type subject struct {
	// name is the file name of its log.
	name string
	// command is the command line with the placeholders {watches}, {kubeconfig}
	// and {manifest}.
	command string
	// user is its user name in the audit log.
	user       string
	kubeconfig string
	manifest   string
	log        string

	cmd   *exec.Cmd
	ended chan struct{}
}

// start starts the process.
func (s *subject) start(watches string) error {
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // the process has its own handle
	args := commandLine(s.command, map[string]string{"{watches}": watches, "{kubeconfig}": s.kubeconfig, "{manifest}": s.manifest})
	if len(args) == 0 {
		return errors.New("--subject: the command line is empty")
	}
	// Independent of a context: the scenarios define how the process ends.
	cmd := exec.Command(args[0], args[1:]...) //nolint:gosec,noctx // chosen by the user
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.kubeconfig, "WATCH_NAMESPACE=")
	cmd.Stdout, cmd.Stderr = log, log
	// A separate process group, so that only this program handles Ctrl-C.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", s.name, err)
	}
	ended := make(chan struct{})
	s.cmd, s.ended = cmd, ended
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	return nil
}

// commandLine splits a command line at spaces and replaces placeholders.
func commandLine(command string, words map[string]string) []string {
	args := strings.Fields(command)
	for i := range args {
		for word, value := range words {
			args[i] = strings.ReplaceAll(args[i], word, value)
		}
	}
	return args
}

func (s *subject) running() bool {
	if s.cmd == nil {
		return false
	}
	select {
	case <-s.ended:
		return false
	default:
		return true
	}
}

// usage returns what the process has used so far.
func (s *subject) usage() (usage, error) {
	if !s.running() {
		return usage{}, s.unexpected()
	}
	return readUsage(s.cmd.Process.Pid)
}

// unexpected returns the error for a process that has exited by itself.
func (s *subject) unexpected() error {
	return fmt.Errorf("%s exited unexpectedly; the end of its log %s:\n%s", s.name, s.log, s.tail())
}

// kill kills the process, as a crash does.
func (s *subject) kill() error { return s.end(syscall.SIGKILL) }

// stop terminates the process.
func (s *subject) stop() error { return s.end(syscall.SIGTERM) }

func (s *subject) end(signal syscall.Signal) error {
	if !s.running() {
		return nil
	}
	if err := s.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	select {
	case <-s.ended:
		return nil
	case <-ctx.Done():
		_ = s.cmd.Process.Kill()
		<-s.ended
		return fmt.Errorf("%s did not stop within %s and was killed", s.name, stopLimit)
	}
}

func (s *subject) tail() string {
	text, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}

// ownCommand returns the command line of this repository's operator.
func operatorCommand(bin string) string {
	return filepath.Join(bin, "chartwright") + " run --watches-file {watches} --metrics-bind-address 0 --health-probe-bind-address 0"
}

// floorCommand returns the command line of the floor. The floor is a separate
// process of this program, so that its CPU time is measured separately.
func floorCommand() (string, error) {
	self, err := os.Executable()
	return self + " floor --kubeconfig {kubeconfig} --manifest {manifest}", err
}
