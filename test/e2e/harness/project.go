package harness

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// Programs returns the paths of chartwright, kubectl and helm by these names.
func Programs() map[string]string {
	return map[string]string{"chartwright": shared.operator, "kubectl": shared.kubectl, "helm": shared.helm}
}

// ServiceAccount returns the account of a ServiceAccount that the test itself
// deployed.
func ServiceAccount(namespace, name string) Account { return Account{namespace, name} }

// AdminKubeconfig writes a kubeconfig of an admin whose default namespace is
// the test's, and returns its path.
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

// Background starts a command. The command and its children end with the test,
// or when end is called.
func (e *Env) Background(cmd *exec.Cmd) (end func()) {
	e.t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	e.must(cmd.Start())
	// The guard kills the process group.
	release, err := shared.guard.adopt(-cmd.Process.Pid)
	e.must(err)
	ended := false
	end = func() {
		if ended {
			return
		}
		ended = true
		// Like Ctrl-C in a terminal.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGINT)
		_ = cmd.Wait()
		release()
	}
	e.cleanup(func(context.Context) error { end(); return nil })
	return end
}
