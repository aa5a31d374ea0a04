package harness

import (
	"errors"
	"fmt"
	"syscall"
)

// Frozen does something while the process is stopped, as a debugger or a
// starved machine does: what happens meanwhile, it sees all at once afterwards.
// Subtests may call it, one at a time.
func (o *Operator) Frozen(do func()) error {
	pid := o.cmd.Process.Pid
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return fmt.Errorf("freeze the operator: %w", err)
	}
	// Also where do ends the test.
	defer func() { _ = syscall.Kill(pid, syscall.SIGCONT) }()
	// The signal is only on its way: a thread may still be sending a request.
	var status syscall.WaitStatus
	for !status.Stopped() {
		_, err := syscall.Wait4(pid, &status, syscall.WUNTRACED, nil)
		if err != nil && !errors.Is(err, syscall.EINTR) {
			return fmt.Errorf("wait for the operator to freeze: %w", err)
		}
		if status.Exited() || status.Signaled() {
			return fmt.Errorf("the operator ended while it was to freeze: %v", status)
		}
	}
	do()
	return nil
}
