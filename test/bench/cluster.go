package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// cluster is a local Kubernetes with admin access.
type cluster struct {
	bin, dir string
	audit    auditLog
	typed    kubernetes.Interface
	dynamic  dynamic.Interface
	// apiServer is the process ID of the API server.
	apiServer int
	// admin is the admin's user name in the audit log.
	admin   string
	version string
	// lock is held while the file is open.
	lock *os.File
}

// startCluster boots a new cluster in a folder.
func startCluster(ctx context.Context, bin, dir string) (*cluster, error) {
	c := &cluster{bin: bin, dir: dir, audit: auditLog{filepath.Join(dir, "audit.log")}}
	if err := c.reserve(); err != nil {
		return nil, err
	}
	// Remove the remains of an interrupted run.
	if err := c.down(ctx); err != nil {
		return nil, err
	}
	if err := os.Remove(c.audit.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if _, err := c.command(ctx, "up", "--audit-log", c.audit.path); err != nil {
		return nil, err
	}
	err := c.connect(ctx)
	return c, err
}

// reserve prevents a second run from stopping this run's cluster. The lock ends
// with this process, however the process ends.
func (c *cluster) reserve() error {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(c.dir, "bench.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return errors.Join(fmt.Errorf("another bench runs on %s: %w", c.dir, err), lock.Close())
	}
	c.lock = lock
	return nil
}

func (c *cluster) connect(ctx context.Context) error {
	status, err := c.command(ctx, "status")
	if err != nil {
		return err
	}
	if c.apiServer, err = parsePID(status, "kube-apiserver"); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(c.dir, "kubeconfig"))
	if err != nil {
		return err
	}
	config.QPS = -1
	if c.typed, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	if c.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return err
	}
	version, err := c.typed.Discovery().ServerVersion()
	if err != nil {
		return err
	}
	c.version = version.GitVersion
	c.admin, err = c.whoAmI(ctx)
	return err
}

// down stops the cluster if it is running.
func (c *cluster) down(ctx context.Context) error {
	_, err := c.command(ctx, "down")
	return err
}

const (
	// The API server is idle if it uses less than serverShare of a processor
	// during serverLook. serverLimit is the maximum wait for that.
	serverLook  = 2 * time.Second
	serverShare = 0.25
	serverLimit = time.Minute
)

// rest waits until the API server is idle, for example after the garbage
// collection of many objects or the creation of many CRDs. After serverLimit it
// continues anyway.
func (c *cluster) rest(ctx context.Context) error {
	limit := time.After(serverLimit)
	again := time.NewTicker(serverLook)
	defer again.Stop()
	before, err := readUsage(c.apiServer)
	for err == nil {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-limit:
			return nil
		case <-again.C:
		}
		var now usage
		if now, err = readUsage(c.apiServer); err == nil && (now.cpu-before.cpu).Seconds() < serverShare*serverLook.Seconds() {
			return nil
		}
		before = now
	}
	return err
}

// command runs a command of the cluster program.
func (c *cluster) command(ctx context.Context, verb string, args ...string) (string, error) {
	return output(ctx, filepath.Join(c.bin, "cluster"), append([]string{verb, "--dir", c.dir}, args...)...)
}

// kubeconfig writes a kubeconfig for a ServiceAccount, given as NAMESPACE/NAME.
func (c *cluster) kubeconfig(ctx context.Context, account string) (string, error) {
	file := filepath.Join(c.dir, strings.ReplaceAll(account, "/", "-")+".kubeconfig")
	_, err := c.command(ctx, "kubeconfig", "--serviceaccount", account, "--out", file)
	return file, err
}

// output runs a program and returns its output.
func output(ctx context.Context, program string, args ...string) (string, error) {
	text, err := exec.CommandContext(ctx, program, args...).Output() //nolint:gosec // the programs are part of this repository
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("%s %s: %w\n%s", filepath.Base(program), strings.Join(args, " "), err, failed.Stderr)
	}
	return string(text), err
}

// parsePID returns the process ID of a component from the output of `cluster
// status`.
func parsePID(status, part string) (int, error) {
	found := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(part) + `\s+running\s+pid (\d+)$`).FindStringSubmatch(status)
	if found == nil {
		return 0, fmt.Errorf("%s does not run:\n%s", part, status)
	}
	return strconv.Atoi(found[1])
}
