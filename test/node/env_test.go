package node

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// commandTimeout is the maximum duration of a kubectl command that does not
// wait for something.
const commandTimeout = 2 * time.Minute

// restarts is held for writing by tests that restart the node or the operator, and
// for reading by all others.
var restarts sync.RWMutex

// env is the environment of one test: a namespace and kubectl.
type env struct {
	*testing.T

	namespace string
	exclusive bool
}

// newEnv creates the namespace of a test. It is deleted, without waiting, when
// the test ends.
func newEnv(t *testing.T) *env {
	t.Helper()
	restarts.RLock()
	t.Cleanup(restarts.RUnlock)
	return createEnv(t, false)
}

// newExclusiveEnv is like newEnv, but waits until no other test runs, so that
// the test can restart the node or the operator.
func newExclusiveEnv(t *testing.T) *env {
	t.Helper()
	restarts.Lock()
	t.Cleanup(restarts.Unlock)
	return createEnv(t, true)
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

func createEnv(t *testing.T, exclusive bool) *env {
	t.Helper()
	name := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(strings.TrimPrefix(t.Name(), "Test")), "-"), "-")
	e := &env{T: t, namespace: name[:min(len(name), 50)], exclusive: exclusive}
	// An earlier run on the same cluster may have left it.
	if _, err := runKubectl(readyTimeout, "", "delete", "namespace", e.namespace, "--ignore-not-found"); err != nil {
		t.Fatal(err)
	}
	e.apply(fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata:
  name: %s
  labels: {pod-security.kubernetes.io/enforce: restricted}`, e.namespace))
	t.Cleanup(func() {
		if t.Failed() {
			e.report()
		}
		if _, err := runKubectl(commandTimeout, "", "delete", "namespace", e.namespace, "--wait=false"); err != nil {
			t.Error(err)
		}
	})
	return e
}

// in returns the same environment for another namespace, which stays when the
// test ends.
func (e *env) in(namespace string) *env {
	other := *e
	other.namespace = namespace
	return &other
}

// kubectl runs kubectl in the namespace of the test and returns its output. An
// error ends the test.
func (e *env) kubectl(args ...string) string {
	e.Helper()
	out, err := e.tryKubectl(args...)
	if err != nil {
		e.Fatal(err)
	}
	return out
}

// tryKubectl is like kubectl, but returns the error.
func (e *env) tryKubectl(args ...string) (string, error) {
	return runKubectl(commandTimeout, "", append([]string{"--namespace", e.namespace}, args...)...)
}

// apply applies manifests in YAML. An error ends the test.
func (e *env) apply(manifests string) {
	e.Helper()
	if out, err := e.tryApply(manifests); err != nil {
		e.Fatalf("%v\n%s", err, out)
	}
}

// tryApply is like apply, but returns the error.
func (e *env) tryApply(manifests string) (string, error) {
	return runKubectl(commandTimeout, manifests, "--namespace", e.namespace, "apply", "--filename", "-")
}

// get returns a field of an object: e.get("podset/web", "{.status.phase}").
func (e *env) get(object, jsonPath string) string {
	e.Helper()
	return e.kubectl("get", object, "--output", "jsonpath="+jsonPath)
}

// patch changes an object with a JSON merge patch.
func (e *env) patch(object, patch string) {
	e.Helper()
	e.kubectl("patch", object, "--type", "merge", "--patch", patch)
}

// annotate sets an annotation: e.annotate("podset/web", "chartwright.dev/test=now").
func (e *env) annotate(object, annotation string) {
	e.Helper()
	e.kubectl("annotate", "--overwrite", object, annotation)
}

// restartNode kills all programs and containers of the node, and starts the node
// again. It returns when the kubelet reports its status, possibly before the
// containers run again.
func (e *env) restartNode() {
	e.Helper()
	if !e.exclusive {
		e.Fatal("a test that restarts the node must use newExclusiveEnv")
	}
	if out, err := run(readyTimeout, "", program("cluster"), "restart-node", "--dir", folder); err != nil {
		e.Fatalf("%v\n%s", err, out)
	}
}

// report logs the state of the namespace and of the operator.
func (e *env) report() {
	for _, args := range [][]string{
		{"get", "all,persistentvolumeclaims", "--output", "wide"},
		{"get", "events", "--sort-by", ".lastTimestamp"},
		{"logs", "--namespace", operatorNamespace, "--selector", operatorSelector, "--tail", "40"},
	} {
		out, err := e.tryKubectl(args...)
		if err != nil {
			out = err.Error()
		}
		e.Logf("kubectl %s:\n%s", strings.Join(args, " "), out)
	}
}

func runKubectl(timeout time.Duration, input string, args ...string) (string, error) {
	return run(timeout, input, program("kube", "kubectl"), args...)
}

// run runs a program with access to the cluster. It returns the standard output
// without surrounding space; the error contains both outputs.
func run(timeout time.Duration, input, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...) //nolint:gosec // the programs of this repository
	cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(folder, "kubeconfig"))
	cmd.Stdin = strings.NewReader(input)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("timed out after %s: %w", timeout, err)
		}
		return "", fmt.Errorf("%s %s: %w\n%s%s", filepath.Base(program), strings.Join(args, " "), err, stdout.String(), stderr.String())
	}
	return strings.TrimSpace(stdout.String()), nil
}
