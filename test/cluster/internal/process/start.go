package process

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// Process is a program started by Start.
type Process struct {
	Ref  Ref
	done chan struct{}
	err  error
}

// Start runs a program in a new session, so that neither the end of this
// program nor Ctrl-C in its terminal affects it. The program's output is
// appended to logFile.
func Start(logFile, program string, args ...string) (*Process, error) {
	return StartWith(&syscall.SysProcAttr{}, logFile, program, args...)
}

// StartWith is like Start, for a process with special attributes.
func StartWith(attributes *syscall.SysProcAttr, logFile, program string, args ...string) (*Process, error) {
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() //nolint:errcheck // the program has its own handle

	cmd := exec.Command(program, args...) //nolint:noctx // it must outlive every context
	cmd.Stdout, cmd.Stderr = log, log
	// Most programs are written in Go. Processor time is scarcer than memory.
	cmd.Env = append(os.Environ(), "GOGC=300")
	attributes.Setsid = true
	cmd.SysProcAttr = attributes
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", program, err)
	}

	// Create the reference before waiting for the process: until then its ID
	// cannot be reused.
	ref, refErr := RefTo(cmd.Process.Pid)
	p := &Process{Ref: ref, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	if refErr != nil {
		_ = cmd.Process.Kill()
		<-p.done
		return nil, fmt.Errorf("%s exited immediately (see %s): %w", program, logFile, refErr)
	}
	return p, nil
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns how the process ended, once Done is closed.
func (p *Process) Err() error {
	if p.err == nil {
		return fmt.Errorf("exited with code 0")
	}
	return p.err
}
