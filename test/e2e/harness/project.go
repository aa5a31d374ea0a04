package harness

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// Programs returns the folders' programs under test, by the names that people
// call them by.
func Programs() map[string]string {
	return map[string]string{"chartwright": shared.operator, "kubectl": shared.kubectl, "helm": shared.helm}
}

// ServiceAccount is one that a test has deployed itself.
func ServiceAccount(namespace, name string) Account { return Account{namespace, name} }

// Kubeconfig writes a kubeconfig for the account and returns its path.
func (e *Env) Kubeconfig(a Account) string {
	e.t.Helper()
	return e.kubeconfig(a)
}

// AdminKubeconfig writes a kubeconfig of an admin who works in the test's
// namespace, and returns its path.
func (e *Env) AdminKubeconfig() string {
	e.t.Helper()
	data, err := os.ReadFile(shared.kubeconfig())
	e.must(err)
	file := filepath.Join(e.t.TempDir(), "kubeconfig")
	e.must(os.WriteFile(file, data, 0o600))
	_, err = command{path: shared.kubectl, args: []string{
		"--kubeconfig", file, "config", "set-context", "--current", "--namespace", e.Namespace,
	}}.run(e.t.Context())
	e.must(err)
	return file
}

// Background starts a command, and ends it and all that it started with the
// test, or earlier by the function that is returned.
func (e *Env) Background(cmd *exec.Cmd) (end func()) {
	e.t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	e.must(cmd.Start())
	// The guard ends the group.
	release, err := shared.guard.adopt(-cmd.Process.Pid)
	e.must(err)
	ended := false
	end = func() {
		if ended {
			return
		}
		ended = true
		// As Ctrl-C does in a terminal.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGINT)
		_ = cmd.Wait()
		release()
	}
	e.cleanup(func(context.Context) error { end(); return nil })
	return end
}
