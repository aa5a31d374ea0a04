package harness

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Env is one test's part of the cluster. Its methods fail the test if the
// harness itself fails.
type Env struct {
	t testing.TB
	// Namespace is the test's own namespace.
	Namespace string
	// Typed and Dynamic are admin clients.
	Typed   kubernetes.Interface
	Dynamic dynamic.Interface

	// kinds are the kinds that the test uses in addition to the installed ones.
	kinds []Kind
}

// New creates a namespace for the test, see deleteNamespace for its end.
func New(t *testing.T) *Env {
	t.Helper()
	return newEnv(t, namespaceFor(t.Name()))
}

// deleteNamespace deletes the custom resources in the namespace without their
// operator, which may have ended. Then it ends the namespace, see endNamespace.
func (e *Env) deleteNamespace(ctx context.Context) error {
	for _, kind := range slices.Concat(installed(), e.kinds) {
		if err := e.release(ctx, kind); err != nil {
			return err
		}
	}
	return e.endNamespace(ctx, e.Namespace)
}

// endNamespace deletes a namespace, unless this run booted the cluster: the
// deletions would cause a third of all requests to the API server.
func (e *Env) endNamespace(ctx context.Context, name string) error {
	if shared.booted {
		return nil
	}
	err := e.Typed.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{})
	return client.IgnoreNotFound(err)
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// namespaceFor returns a name that contains the beginning of the test's name and
// is different in each run.
func namespaceFor(test string) string {
	name := notInNames.ReplaceAllString(strings.ToLower(strings.TrimPrefix(test, "Test")), "-")
	return fmt.Sprintf("e2e-%s-%s", strings.Trim(name[:min(len(name), 36)], "-"), rand.String(5))
}

// T returns the test.
func (e *Env) T() *testing.T {
	t, ok := e.t.(*testing.T)
	if !ok {
		panic("the environment of a shared operator has no test")
	}
	return t
}

func (e *Env) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
}

// cleanup runs do at the end of the test, with a context that is not canceled. It repeats do
// if the API server is too busy to end a request in time.
func (e *Env) cleanup(do func(context.Context) error) {
	ctx := context.WithoutCancel(e.t.Context())
	e.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(ctx, deadline)
		defer cancel()
		err := do(ctx)
		for apierrors.IsTimeout(err) && ctx.Err() == nil {
			err = do(ctx)
		}
		if err != nil {
			e.t.Errorf("clean up: %v", err)
		}
	})
}

// Kubectl runs kubectl as an admin in the test's namespace and returns its
// output.
func (e *Env) Kubectl(args ...string) string {
	e.t.Helper()
	return e.KubectlWith("", args...)
}

// KubectlWith is Kubectl with a standard input.
func (e *Env) KubectlWith(stdin string, args ...string) string {
	e.t.Helper()
	args = append([]string{"--kubeconfig", shared.kubeconfig(), "--namespace", e.Namespace}, args...)
	output, err := command{path: shared.kubectl, args: args, stdin: stdin}.run(e.t.Context())
	e.must(err)
	return output
}

// Helm runs helm as an admin in the test's namespace and returns its output.
func (e *Env) Helm(args ...string) string {
	e.t.Helper()
	output, err := e.TryHelm(args...)
	e.must(err)
	return output
}

// TryHelm is Helm, but returns the error.
func (e *Env) TryHelm(args ...string) (string, error) {
	e.t.Helper()
	return e.helm(shared.helm, "", args...)
}

// TryHelm4 is TryHelm with Helm 4.
func (e *Env) TryHelm4(args ...string) (string, error) {
	e.t.Helper()
	return e.helm(shared.helm+"4", "", args...)
}

// HelmAs runs helm under another program name. The Helm SDK uses the name of
// its program as the manager in managedFields.
func (e *Env) HelmAs(name string, args ...string) string {
	e.t.Helper()
	output, err := e.helm(shared.helm, name, args...)
	e.must(err)
	return output
}

func (e *Env) helm(program, name string, args ...string) (string, error) {
	// Separate folders isolate it from the configuration of the developer.
	home := e.t.TempDir()
	return command{
		path: program,
		as:   name,
		args: append([]string{"--kubeconfig", shared.kubeconfig(), "--namespace", e.Namespace}, args...),
		env:  []string{"HELM_CACHE_HOME=" + home, "HELM_CONFIG_HOME=" + home, "HELM_DATA_HOME=" + home},
	}.run(e.t.Context())
}

// For returns the same part of the cluster for a subtest. Failures are reported
// for the subtest.
func (e *Env) For(t *testing.T) *Env {
	t.Helper()
	sub := *e
	sub.t = t
	return &sub
}

// In returns the same part of the cluster with another namespace. When the test
// ends, the custom resources in this namespace of the test's kinds so far are
// deleted, but not the namespace: see NewNamespace.
func (e *Env) In(namespace string) *Env {
	e.t.Helper()
	other := *e
	other.Namespace = namespace
	other.cleanup(func(ctx context.Context) error {
		for _, kind := range other.kinds {
			if err := other.release(ctx, kind); err != nil {
				return err
			}
		}
		return nil
	})
	return &other
}
