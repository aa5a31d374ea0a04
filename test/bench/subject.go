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
	// stopLimit is longer than operators give themselves to stop.
	stopLimit = 45 * time.Second
	tailLines = 25
)

// subject is what is measured: a program that serves a watches file, and the
// process of it that runs.
type subject struct {
	// name is the file name of its log.
	name string
	// line is the command line, in which {watches}, {kubeconfig} and {manifest}
	// are replaced.
	line string
	// user is who it is in the audit log.
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
	args := commandLine(s.line, map[string]string{"{watches}": watches, "{kubeconfig}": s.kubeconfig, "{manifest}": s.manifest})
	if len(args) == 0 {
		return errors.New("--subject: the command line is empty")
	}
	// Not bound to a context: how it ends is part of the measurement.
	cmd := exec.Command(args[0], args[1:]...) //nolint:gosec,noctx // the person's own choice
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.kubeconfig, "WATCH_NAMESPACE=")
	cmd.Stdout, cmd.Stderr = log, log
	// Ctrl-C reaches it by way of us alone.
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

// commandLine splits a command line at its spaces and replaces words in it.
func commandLine(line string, words map[string]string) []string {
	args := strings.Fields(line)
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

// usage is what the process has used up so far.
func (s *subject) usage() (usage, error) {
	if !s.running() {
		return usage{}, s.unexpected()
	}
	return readUsage(s.cmd.Process.Pid)
}

// unexpected is the error of a process that has ended by itself.
func (s *subject) unexpected() error {
	return fmt.Errorf("%s has ended by itself; the end of its log %s:\n%s", s.name, s.log, s.tail())
}

// kill ends the process as a crash does.
func (s *subject) kill() error { return s.end(syscall.SIGKILL) }

// stop asks the process to end.
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

// ownLine is the command line of this repository's operator.
func ownLine(bin string) string {
	return filepath.Join(bin, "chartwright") + " run --watches-file {watches} --metrics-bind-address 0 --health-probe-bind-address 0"
}

// floorLine is that of the floor, which is a part of this program, so that its
// CPU time is a process's own.
func floorLine() (string, error) {
	self, err := os.Executable()
	return self + " floor --kubeconfig {kubeconfig} --manifest {manifest}", err
}
