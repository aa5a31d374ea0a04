package harness

import (
	"errors"
	"fmt"
	"syscall"
)

// WhileFrozen calls do while the process is stopped, as by a debugger or on an
// overloaded machine. The process receives everything that happened meanwhile
// at once when it continues. Subtests may call it, but not in parallel.
func (o *Operator) WhileFrozen(do func()) error {
	pid := o.cmd.Process.Pid
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return fmt.Errorf("freeze the operator: %w", err)
	}
	// Continue the process even if do ends the test.
	defer func() { _ = syscall.Kill(pid, syscall.SIGCONT) }()
	// The signal is delivered asynchronously: a thread may still send a
	// request.
	var status syscall.WaitStatus
	for !status.Stopped() {
		_, err := syscall.Wait4(pid, &status, syscall.WUNTRACED, nil)
		if err != nil && !errors.Is(err, syscall.EINTR) {
			return fmt.Errorf("wait for the operator to freeze: %w", err)
		}
		if status.Exited() || status.Signaled() {
			return fmt.Errorf("the operator ended before it froze: %v", status)
		}
	}
	do()
	return nil
}
