package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// startLimit is the maximum time until the operator is ready.
	startLimit = 30 * time.Second
	// stopLimit is the maximum time until it has stopped. It is longer than the
	// operator's own shutdown timeout.
	stopLimit = 30 * time.Second
	// tailLines is the number of log lines shown after a failure.
	tailLines = 25
)

// operator is the running process of bin/chartwright.
type operator struct {
	cmd *exec.Cmd
	log string
	// ended is closed when the process has exited.
	ended chan struct{}
}

// startOperator starts the operator and waits until it is ready.
func (r *rig) startOperator(ctx context.Context) (note string, err error) {
	kubeconfig := filepath.Join(r.files, "operator.kubeconfig")
	if err := r.writeAccountKubeconfig(ctx, kubeconfig); err != nil {
		return "", err
	}
	r.later(func(context.Context) error { return os.Remove(kubeconfig) })
	health, err := freeAddress(ctx)
	if err != nil {
		return "", err
	}
	log, err := os.OpenFile(filepath.Join(r.files, "operator.log"), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	defer log.Close() //nolint:errcheck // the operator has its own handle

	// Not CommandContext: the operator must be stopped before the cluster.
	cmd := exec.Command(filepath.Join(r.bin, "chartwright"), "run", //nolint:gosec,noctx // the repository's own program
		"--health-probe-bind-address="+health, "--metrics-bind-address=0", "--zap-encoder=console", "--zap-time-encoding=iso8601")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	cmd.Stdout, cmd.Stderr = log, log
	// A separate process group, so that only this program handles Ctrl-C.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	r.operator = &operator{cmd: cmd, log: log.Name(), ended: make(chan struct{})}
	r.later(r.stopOperator)
	go func() {
		err := cmd.Wait()
		if err == nil {
			err = errors.New("exit status 0")
		}
		r.cancel(fmt.Errorf("the operator exited: %w", err))
		close(r.operator.ended)
	}()
	// The operator logs each failed readiness check, so do not check too often.
	return "", awaitEvery(ctx, 250*time.Millisecond, startLimit, ready("http://"+health+"/readyz"))
}

// stopOperator terminates the operator and waits until it has exited.
func (r *rig) stopOperator(ctx context.Context) error {
	select {
	case <-r.operator.ended:
		return nil
	default:
	}
	sayf(r.out, "Stopping the operator ...\n")
	if err := r.operator.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, stopLimit)
	defer cancel()
	select {
	case <-r.operator.ended:
		return nil
	case <-ctx.Done():
		_ = r.operator.cmd.Process.Kill()
		<-r.operator.ended
		return fmt.Errorf("the operator did not stop within %s and was killed", stopLimit)
	}
}

// tail returns the last lines of the operator's log.
func (o *operator) tail() string {
	log, err := os.ReadFile(o.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}

// ready returns a check that a URL responds with 200.
func ready(url string) func(context.Context) error {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close() //nolint:errcheck // the response is not read
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: status %s", url, response.Status)
		}
		return nil
	}
}

// freeAddress returns an unused loopback address.
func freeAddress(ctx context.Context) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}
