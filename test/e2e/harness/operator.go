package harness

import (
	"bytes"
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

// Options are how an operator is started. The zero Options serve the kinds of
// the repository in the test's namespace.
type Options struct {
	// Name is the flag --operator-name; empty is the test's namespace.
	Name string
	// Watches is a watches file; empty is the one in the binary.
	Watches string
	// ChartsDir is a folder of charts, each of which is a kind, too.
	ChartsDir string
	// Account is whom the operator logs in as, with the rights that its kinds
	// need by "chartwright rbac" and no other. The zero Account is System or,
	// with a watches file, one of the operator's own.
	Account Account
	// Namespaced gives it the rights of "chartwright rbac --namespaced", in the
	// test's namespace.
	Namespaced bool
	// Rights, if there are any, are what it gets in the place of those that its
	// kinds need.
	Rights *Rights
	// Lacks are rights that the test takes away on purpose.
	Lacks []rbacv1.PolicyRule
	// Everywhere is to watch all namespaces, which takes kinds of the test's
	// own.
	Everywhere bool
	// Proxy is what stands between the operator and the API server, if anything
	// does.
	Proxy *Proxy
	// Memory limits the memory of the process, in bytes, as its container does; 0
	// is no limit.
	Memory int64
	// EmptyRoot runs the process as the image does: see enterEmptyRoot.
	EmptyRoot bool
	// Args are more flags, and Env more variables.
	Args, Env []string
}

// Operator is a process of the operator, or several one after another.
type Operator struct {
	env        *Env
	options    Options
	kubeconfig string
	log        string
	probes     string

	cmd *exec.Cmd
	// done is closed when the process has ended, with exit set.
	done chan struct{}
	exit error
	// memory is the limit of the process, nil for none.
	memory *memoryLimit
}

// stopTime is longer than the operator gives itself to stop.
const stopTime = 30 * time.Second

// NewOperator prepares an operator. Its log is printed if the test fails.
func (e *Env) NewOperator(options Options) *Operator {
	e.t.Helper()
	if options.Name == "" {
		options.Name = e.Namespace
	}
	switch {
	case options.Rights != nil:
		options.Account = e.NewAccount()
		e.grantThese(options.Account, *options.Rights)
	case options.Account != (Account{}):
		e.grant(options)
	case options.Watches != "" || options.ChartsDir != "" || len(options.Lacks) > 0:
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

// User is the operator's name in the audit log.
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

// Launch starts the process, and leaves it to the test to see what becomes of
// it.
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
	// Not bound to the test's context: how it is ended is part of the test.
	ctx := context.WithoutCancel(o.env.t.Context())
	args = append(args, o.options.Args...)
	var cmd *exec.Cmd
	if o.options.Memory > 0 {
		o.memory = newMemoryLimit(o.options.Memory)
		cmd = o.memory.command(ctx, shared.operator, args...)
	} else {
		cmd = exec.CommandContext(ctx, shared.operator, args...)
		cmd.Env = os.Environ()
	}
	namespaces := o.env.Namespace
	if o.options.Everywhere {
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
	// It ends before its rights do: the standby leads for a moment when it does.
	o.env.cleanup(func(context.Context) error {
		if !o.Running() {
			return nil
		}
		return o.end(syscall.SIGTERM)
	})
}

// Probe asks the probe endpoint and returns nil where it answers 200.
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

// Stop asks the process to end, as Kubernetes does, and expects it to end well.
func (o *Operator) Stop() {
	o.env.t.Helper()
	o.env.must(o.end(syscall.SIGTERM))
}

// Kill ends the process at once, as a crash does.
func (o *Operator) Kill() {
	o.env.t.Helper()
	err := o.end(syscall.SIGKILL)
	if _, ended := errors.AsType[*exec.ExitError](err); !ended {
		o.env.t.Fatalf("kill the operator: %v", err)
	}
}

// KillAtWrite kills the process at one of the writes that it makes from now on,
// see Proxy.Trap.
func (o *Operator) KillAtWrite(write int, moment Moment) *Trap {
	// Not the process that may have taken its place by then.
	cmd, done := o.cmd, o.done
	return o.options.Proxy.Trap(write, moment, func() {
		_ = cmd.Process.Kill()
		<-done
	})
}

func (o *Operator) end(signal os.Signal) error {
	// A trap may have sprung meanwhile, see KillAtWrite.
	if err := o.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end the operator: %w", err)
	}
	select {
	case <-o.done:
	case <-time.After(stopTime):
		_ = o.cmd.Process.Kill()
		<-o.done
		return fmt.Errorf("the operator did not end within %s of %s", stopTime, signal)
	}
	if o.exit != nil {
		return fmt.Errorf("the operator ended on %s with: %w", signal, o.exit)
	}
	return nil
}

// Running tells whether the process lives.
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

// Log returns what the operator printed so far, over all its processes.
func (o *Operator) Log() string {
	data, err := os.ReadFile(o.log)
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(data))
}

// RunToEnd runs the operator against a kubeconfig until it ends by itself, and
// returns its exit code and what it printed.
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
