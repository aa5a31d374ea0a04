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
	// startLimit is how long the operator may take to be ready.
	startLimit = 30 * time.Second
	// stopLimit is how long it may take to stop; longer than it gives itself.
	stopLimit = 30 * time.Second
	// tailLines is how much of its log is shown when something went wrong.
	tailLines = 25
)

// operator is bin/chartwright, running.
type operator struct {
	cmd *exec.Cmd
	log string
	// ended is closed when it has ended, by itself or because it was told to.
	ended chan struct{}
}

// startOperator starts the operator and returns when it is ready.
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

	// Not by CommandContext: it is stopped in its turn, before the cluster is.
	cmd := exec.Command(filepath.Join(r.bin, "chartwright"), "run", //nolint:gosec,noctx // our own program
		"--health-probe-bind-address="+health, "--metrics-bind-address=0", "--zap-encoder=console", "--zap-time-encoding=iso8601")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	cmd.Stdout, cmd.Stderr = log, log
	// A group of its own, so that Ctrl-C reaches it by way of us alone.
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
		r.cancel(fmt.Errorf("the operator has ended: %w", err))
		close(r.operator.ended)
	}()
	// The operator logs every time that it has to say no.
	return "", awaitEvery(ctx, 250*time.Millisecond, startLimit, ready("http://"+health+"/readyz"))
}

// stopOperator asks the operator to stop and waits for it.
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

// ready checks that an address answers 200.
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
		defer response.Body.Close() //nolint:errcheck // it was not read
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s", url, response.Status)
		}
		return nil
	}
}

// freeAddress finds a port on loopback that nobody listens on.
func freeAddress(ctx context.Context) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}
