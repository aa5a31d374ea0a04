package tryout

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/chartwright/chartwright/internal/authoring/scaffold"
	"github.com/chartwright/chartwright/internal/catalog"
)

// target is the cluster with the operator that serves the kind.
type target struct {
	// kubeconfig is the file of a local cluster, and kubeContext the context of another.
	kubeconfig, kubeContext string
	namespace               string
	config                  *rest.Config
	client                  dynamic.Interface
	// close stops a local cluster.
	close func() error

	// log is the file of the operator's log. ended is closed when the operator has ended,
	// and served is then its error.
	log    string
	ended  chan struct{}
	served error
}

// open connects to the cluster. It starts a local cluster if no context is set.
func (t Try) open(ctx context.Context, folder string) (*target, error) {
	c := &target{kubeContext: t.Context, close: func() error { return nil }}
	if t.Context == "" {
		local, err := findLocalCluster(folder)
		if err != nil {
			return nil, err
		}
		c.close = func() error {
			t.sayf("Stopping the cluster ...\n")
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
			defer cancel()
			return local.run(ctx, "down")
		}
		t.sayf("Starting a local Kubernetes with simulated nodes (no container runs) ...\n")
		if err := local.run(ctx, "up"); err != nil {
			_ = c.close()
			return nil, err
		}
		c.kubeconfig = filepath.Join(local.folder, "kubeconfig")
	}
	if err := c.connect(); err != nil {
		_ = c.close()
		return nil, err
	}
	return c, nil
}

func (c *target) connect() (err error) {
	from := clientConfig(c.kubeconfig, c.kubeContext)
	if c.config, err = from.ClientConfig(); err != nil {
		return err
	}
	if c.namespace, _, err = from.Namespace(); err != nil {
		return err
	}
	// Checks must not wait for the client's own rate limit.
	c.config.QPS = -1
	c.client, err = dynamic.NewForConfig(c.config)
	return err
}

// serve starts the operator. The result stops it and returns its error. The operator ends
// after the custom resource is deleted, so it does not end with the context.
func (c *target) serve(ctx context.Context, t Try, kind catalog.Kind, log string) (stop func() error) {
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c.log, c.ended = log, make(chan struct{})
	go func() {
		defer close(c.ended)
		c.served = t.Serve(running, c.config, kind, c.namespace, log)
	}()
	return func() error {
		cancel()
		<-c.ended
		return c.served
	}
}

// create creates the custom resource as soon as the API server serves the kind.
func (c *target) create(ctx context.Context, made scaffold.Example, object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	resources := c.client.Resource(made.Kind.GVK().GroupVersion().WithResource(made.CRD.Spec.Names.Plural)).Namespace(c.namespace)
	err := wait.PollUntilContextCancel(ctx, checkInterval, true, func(ctx context.Context) (bool, error) {
		select {
		case <-c.ended:
			return false, fmt.Errorf("the operator has ended: %w", c.served)
		default:
		}
		_, err := resources.Create(ctx, object, metav1.CreateOptions{FieldManager: "kubectl"})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return true, err
	})
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return resources, err
}

// delete deletes the custom resource and waits until the release is uninstalled. Nothing
// remains of a local cluster, so that this is needed only in other clusters.
func (c *target) delete(t Try, resources dynamic.ResourceInterface, name string) {
	if c.kubeconfig != "" {
		return
	}
	t.sayf("Deleting the custom resource ...\n")
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	err := resources.Delete(ctx, name, metav1.DeleteOptions{})
	if err == nil {
		err = wait.PollUntilContextCancel(ctx, checkInterval, true, func(ctx context.Context) (bool, error) {
			_, err := resources.Get(ctx, name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return true, nil
			}
			return false, err
		})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		t.sayf("The custom resource %s was not deleted: %v\n", name, err)
		return
	}
	t.sayf("The release is uninstalled. The CustomResourceDefinition and the Secret %s-signing-key remain.\n", OperatorName)
}

// explain adds the end of the operator's log to an error.
func (c *target) explain(err error) error {
	const lines = 10
	data, readErr := os.ReadFile(c.log)
	text := strings.Split(strings.TrimSpace(string(data)), "\n")
	if err == nil || readErr != nil || len(data) == 0 {
		return err
	}
	return fmt.Errorf("%w\n\nThe operator's log ends with:\n%s", err, indent(strings.Join(text[max(0, len(text)-lines):], "\n")))
}

// next returns instructions for another terminal.
func (c *target) next(kind catalog.Kind, name string) string {
	resource := strings.ToLower(kind.Kind) + "/" + name
	var text strings.Builder
	text.WriteString("\nThe operator is running. In another terminal:\n\n")
	kubectl := "kubectl"
	if c.kubeconfig != "" {
		fmt.Fprintf(&text, "  export KUBECONFIG=%s\n", c.kubeconfig)
	} else {
		kubectl += " --context " + c.kubeContext
	}
	for _, line := range []string{
		kubectl + " edit " + resource + "           # each edit of the spec is a Helm upgrade",
		kubectl + " chartwright status " + resource,
		"helm history " + name + strings.TrimPrefix(strings.Replace(kubectl, "--context", "--kube-context", 1), "kubectl"),
	} {
		fmt.Fprintf(&text, "  %s\n", line)
	}
	fmt.Fprintf(&text, "\nThe operator's log: %s\nCtrl-C uninstalls the release and stops the operator%s.\n", c.log, map[bool]string{true: " and the cluster"}[c.kubeconfig != ""])
	return text.String()
}
