package process

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// Process is a program that was started here.
type Process struct {
	Ref  Ref
	done chan struct{}
	err  error
}

// Start runs a program in a session of its own, so that it is not touched by
// the end of this program nor by a Ctrl-C in its terminal. What it prints is
// added to logFile.
func Start(logFile, program string, args ...string) (*Process, error) {
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() //nolint:errcheck // the program has a copy of its own

	cmd := exec.Command(program, args...) //nolint:noctx // it is meant to outlive every context here
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", program, err)
	}

	// The reference is made before anything waits for the process: until then
	// its id cannot be given to another one.
	ref, refErr := RefTo(cmd.Process.Pid)
	p := &Process{Ref: ref, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	if refErr != nil {
		_ = cmd.Process.Kill()
		<-p.done
		return nil, fmt.Errorf("%s ended as soon as it started (see %s): %w", program, logFile, refErr)
	}
	return p, nil
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err says how the process ended, once Done is closed.
func (p *Process) Err() error {
	if p.err == nil {
		return fmt.Errorf("ended by itself")
	}
	return p.err
}
