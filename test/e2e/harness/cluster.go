package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// cluster is a running Kubernetes with admin access.
type cluster struct {
	// dir is the cluster's folder, as created by `cluster up --dir`.
	dir string
	// booted reports whether this run booted the cluster and must stop it.
	booted bool
	// Paths of programs.
	program, kubectl, helm string

	config  *rest.Config
	typed   kubernetes.Interface
	dynamic dynamic.Interface
}

// findCluster returns the cluster that $CHARTWRIGHT_CLUSTER names, or a cluster
// to be booted in the scratch folder.
func findCluster(scratch string) (*cluster, error) {
	c := &cluster{dir: os.Getenv("CHARTWRIGHT_CLUSTER")}
	if c.dir == "" {
		c.booted, c.dir = true, filepath.Join(scratch, "cluster")
	}
	for _, p := range []struct {
		to   *string
		path []string
	}{{&c.program, []string{"cluster"}}, {&c.kubectl, []string{"kube", "kubectl"}}, {&c.helm, []string{"helm"}}} {
		var err error
		if *p.to, err = program(p.path...); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// open boots the cluster if necessary, connects to it and installs what tests
// need.
func (c *cluster) open(ctx context.Context) error {
	if c.booted {
		if err := c.up(ctx); err != nil {
			return err
		}
	}
	if err := c.connect(); err != nil {
		return err
	}
	return c.install(ctx)
}

// up boots the cluster. Its components need a sixth less processor time with a larger
// heap. The limit is for the attacks, which store gigabytes.
func (c *cluster) up(ctx context.Context) error {
	_, err := command{
		path: c.program, args: []string{"up", "--dir", c.dir, "--audit-log", c.auditLog()},
		env: []string{"GOGC=400", "GOMEMLIMIT=3GiB"},
	}.run(ctx)
	return err
}

// stopCommand returns a command that stops the cluster if this run booted it,
// and otherwise does nothing.
func (c *cluster) stopCommand() []string {
	if !c.booted {
		return []string{"true"}
	}
	return []string{c.program, "down", "--dir", c.dir}
}

func (c *cluster) kubeconfig() string { return filepath.Join(c.dir, "kubeconfig") }

func (c *cluster) auditLog() string { return filepath.Join(c.dir, "audit.log") }

func (c *cluster) connect() error {
	var err error
	if c.config, err = clientcmd.BuildConfigFromFlags("", c.kubeconfig()); err != nil {
		return err
	}
	c.config.QPS = -1
	if c.typed, err = kubernetes.NewForConfig(c.config); err != nil {
		return err
	}
	c.dynamic, err = dynamic.NewForConfig(c.config)
	return err
}

// install applies config/default without the Deployment, because the operators
// of tests are processes outside the cluster.
func (c *cluster) install(ctx context.Context) error {
	rendered, err := command{path: c.kubectl, args: []string{"kustomize", Root("config", "default")}}.run(ctx)
	if err != nil {
		return err
	}
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(rendered), 4096)
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("v1")
	list.SetKind("List")
	for {
		var object unstructured.Unstructured
		switch err := decoder.Decode(&object.Object); {
		case errors.Is(err, io.EOF):
			return c.apply(ctx, list)
		case err != nil:
			return fmt.Errorf("config/default: %w", err)
		}
		if object.GetKind() != "Deployment" {
			list.Items = append(list.Items, object)
		}
	}
}

func (c *cluster) apply(ctx context.Context, list *unstructured.UnstructuredList) error {
	data, err := list.MarshalJSON()
	if err != nil {
		return err
	}
	kubectl := func(args ...string) error {
		_, err := command{path: c.kubectl, args: append(args, "--kubeconfig", c.kubeconfig()), stdin: string(data)}.run(ctx)
		return err
	}
	if err := kubectl("apply", "--server-side", "-f", "-"); err != nil {
		return err
	}
	// Wait only for these CRDs: parallel tests create and delete others.
	established := []string{"wait", "--for=condition=Established", "--timeout=30s"}
	for i := range list.Items {
		if list.Items[i].GetKind() == "CustomResourceDefinition" {
			established = append(established, "crd/"+list.Items[i].GetName())
		}
	}
	var last error
	// kubectl wait fails for a CRD that has no conditions yet.
	err = wait.PollUntilContextTimeout(ctx, interval, deadline, true, func(context.Context) (bool, error) {
		last = kubectl(established...)
		return last == nil, nil
	})
	return errors.Join(err, last)
}
