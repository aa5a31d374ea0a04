package harness

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Options define how an operator is started. The zero Options serve the kinds
// of this repository in the test's namespace.
type Options struct {
	// Program is the operator's executable, by default the program under test.
	Program string
	// Name is the value of --operator-name, by default the test's namespace.
	Name string
	// Watches is the path of a watches file, by default the file in the binary.
	Watches string
	// ChartsDir is the value of --charts-dir, a folder of charts.
	ChartsDir string
	// ChartKinds makes the operator serve ChartKinds. It is the path of a watches
	// file with the kinds that they will define: the operator gets their
	// permissions and does not read the file.
	ChartKinds string
	// Account is the operator's ServiceAccount. It gets exactly the permissions
	// that "chartwright rbac" prints for the kinds. The default is System or,
	// with a watches file, a new account.
	Account Account
	// Namespaced grants the permissions that "chartwright rbac --namespaced"
	// prints, in the test's namespace.
	Namespaced bool
	// Grants, if set, replace the permissions that the kinds need.
	Grants *Grants
	// Missing are rules that the operator does not get.
	Missing []rbacv1.PolicyRule
	// AllNamespaces makes the operator watch all namespaces. The kinds must
	// belong to this test.
	AllNamespaces bool
	// Namespaces are the namespaces that the operator watches, by default the
	// test's.
	Namespaces []string
	// Proxy, if set, forwards the operator's requests to the API server.
	Proxy *Proxy
	// Memory limits the memory of the process, in bytes, as a container's limit
	// does; 0 means no limit.
	Memory int64
	// EmptyRoot runs the process in the file system of the image, see
	// enterEmptyRoot.
	EmptyRoot bool
	// Args are additional flags, Env additional environment variables.
	Args, Env []string
}

// Operator is the process of an operator. It can be restarted.
type Operator struct {
	env        *Env
	options    Options
	kubeconfig string
	log        string
	probes     string
	cache      string

	cmd *exec.Cmd
	// done is closed when the process has ended. Then exit is set.
	done chan struct{}
	exit error
	// memory is the memory limit of the process, nil for none.
	memory *memoryLimit
}

// NewOperator prepares an operator. Its log is printed if the test fails.
func (e *Env) NewOperator(options Options) *Operator {
	e.t.Helper()
	options.Name = cmp.Or(options.Name, e.Namespace)
	options.Program = cmp.Or(options.Program, shared.operator)
	switch {
	case options.Grants != nil:
		options.Account = e.NewAccount()
		e.grantRules(options.Account, *options.Grants)
	case options.Account != (Account{}):
		e.grant(options)
	case options.Watches != "" || options.ChartsDir != "" || options.ChartKinds != "" || len(options.Missing) > 0:
		options.Account = e.NewAccount()
		e.grant(options)
	default:
		options.Account = System
		e.noteSystem()
	}
	e.bindSigningKey(options)
	o := &Operator{
		env:        e,
		options:    options,
		kubeconfig: e.kubeconfig(options.Account),
		log:        filepath.Join(e.t.TempDir(), "operator.log"),
		cache:      e.t.TempDir(),
	}
	if options.Proxy != nil {
		e.must(options.Proxy.redirect(o.kubeconfig))
	}
	e.cleanup(func(context.Context) error {
		if e.t.Failed() {
			e.t.Logf("log of operator %s:\n%s", options.Name, o.Log())
		}
		return nil
	})
	return o
}

// User returns the operator's user name, as in the audit log.
func (o *Operator) User() string { return o.options.Account.User() }

// Start starts the process and waits until it is ready.
func (o *Operator) Start() *Operator {
	o.env.t.Helper()
	o.Launch()
	o.env.Wait("operator "+o.options.Name+" to be ready", func(ctx context.Context) error {
		if !o.Running() {
			o.env.t.Fatalf("the operator ended while it started: %v", o.exit)
		}
		return o.Probe(ctx, "/readyz")
	})
	return o
}

// Launch starts the process without waiting until it is ready.
func (o *Operator) Launch() {
	o.env.t.Helper()
	log, err := os.OpenFile(o.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	o.env.must(err)
	defer func() { _ = log.Close() }()

	o.probes = o.env.freeAddress()
	args := []string{
		"run", "--operator-name", o.options.Name,
		"--metrics-bind-address", "0", "--health-probe-bind-address", o.probes, "--zap-log-level", "debug",
	}
	if o.options.Watches != "" {
		args = append(args, "--watches-file", o.options.Watches)
	}
	if o.options.ChartsDir != "" {
		args = append(args, "--charts-dir", o.options.ChartsDir)
	}
	if o.options.ChartKinds != "" {
		args = append(args, "--chart-kinds", "--chart-cache-dir", o.cache)
		if o.options.Watches == "" {
			args = append(args, "--watches-file=")
		}
	}
	// Independent of the test's context: the tests define how the process ends.
	ctx := context.WithoutCancel(o.env.t.Context())
	args = append(args, o.options.Args...)
	var cmd *exec.Cmd
	if o.options.Memory > 0 {
		o.memory = newMemoryLimit(o.options.Memory)
		cmd = o.memory.command(ctx, o.options.Program, args...)
	} else {
		cmd = exec.CommandContext(ctx, o.options.Program, args...)
		cmd.Env = os.Environ()
	}
	namespaces := cmp.Or(strings.Join(o.options.Namespaces, ","), o.env.Namespace)
	if o.options.AllNamespaces {
		namespaces = ""
	}
	cmd.Env = append(cmd.Env, "KUBECONFIG="+o.kubeconfig, "WATCH_NAMESPACE="+namespaces)
	cmd.Env = append(cmd.Env, o.options.Env...)
	if o.options.EmptyRoot {
		o.env.must(o.enterEmptyRoot(cmd))
	}
	cmd.Stdout, cmd.Stderr = log, log
	o.env.must(cmd.Start())
	release, err := shared.guard.adopt(cmd.Process.Pid)
	o.env.must(err)
	done := make(chan struct{})
	o.cmd, o.done = cmd, done
	go func() {
		o.exit = cmd.Wait()
		release()
		close(done)
	}()
	if o.memory != nil {
		go o.memory.watch(cmd.Process, done)
	}
	// Stop the operator before its permissions are deleted: a standby replica
	// becomes leader for a moment when it stops.
	o.env.cleanup(func(context.Context) error {
		if !o.Running() {
			return nil
		}
		return o.end(syscall.SIGTERM)
	})
}

// Probe queries the probe endpoint and returns nil if it answers 200.
func (o *Operator) Probe(ctx context.Context, path string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+o.probes+path, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, response.Status)
	}
	return nil
}

// Stop sends SIGTERM to the process, as Kubernetes does, and requires that it
// exits with code 0.
func (o *Operator) Stop() {
	o.env.t.Helper()
	o.env.must(o.end(syscall.SIGTERM))
}

// Kill kills the process, as a crash does.
func (o *Operator) Kill() {
	o.env.t.Helper()
	err := o.end(syscall.SIGKILL)
	if _, ended := errors.AsType[*exec.ExitError](err); !ended {
		o.env.t.Fatalf("kill the operator: %v", err)
	}
}

// KillAtWrite kills the process at its write-th write from now on, see
// Proxy.Trap.
func (o *Operator) KillAtWrite(write int, moment Moment) *Trap {
	// Kill this process, not one that was started after it.
	cmd, done := o.cmd, o.done
	return o.options.Proxy.Trap(write, moment, func() {
		_ = cmd.Process.Kill()
		<-done
	})
}

func (o *Operator) end(signal os.Signal) error {
	// A trap may have killed the process already, see KillAtWrite.
	if err := o.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end the operator: %w", err)
	}
	select {
	case <-o.done:
	case <-time.After(deadline):
		_ = o.cmd.Process.Kill()
		<-o.done
		return fmt.Errorf("the operator did not end within %s of %s", deadline, signal)
	}
	if o.exit != nil {
		return fmt.Errorf("the operator ended on %s with: %w", signal, o.exit)
	}
	return nil
}

// Running reports whether the process is running.
func (o *Operator) Running() bool {
	if o.cmd == nil {
		return false
	}
	select {
	case <-o.done:
		return false
	default:
		return true
	}
}

// Log returns the output of all processes of the operator so far.
func (o *Operator) Log() string {
	data, err := os.ReadFile(o.log)
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(data))
}

// RunToEnd runs the operator with a kubeconfig until it exits, and returns its
// exit code and its output.
func (e *Env) RunToEnd(kubeconfig string, args ...string) (code int, output string) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), deadline)
	defer cancel()
	var text strings.Builder
	cmd := exec.CommandContext(ctx, shared.operator, append([]string{"run"}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	cmd.Stdout, cmd.Stderr = &text, &text
	err := cmd.Run()
	code, ran := exitCode(err)
	if !ran || ctx.Err() != nil {
		e.t.Fatalf("run the operator: %v\n%s", errors.Join(err, ctx.Err()), text.String())
	}
	return code, text.String()
}
