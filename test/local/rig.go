package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// existing is the value of --cluster for an existing cluster.
const existing = "existing"

type options struct {
	cluster string
	bin     string
}

// rig is a cluster with a running operator.
type rig struct {
	// ctx ends with Ctrl-C, and when the operator exits; userCtx ends only with
	// Ctrl-C.
	ctx, userCtx context.Context
	cancel       context.CancelCauseFunc
	out          io.Writer

	bin string
	// dir is the folder of the local cluster, empty for an existing one.
	dir string
	// files is the folder with the operator's log and kubeconfig.
	files string
	shell shell

	// client has the user's own credentials. namespace is the default namespace
	// of kubectl.
	client    client.Client
	config    clientcmd.ClientConfig
	namespace string

	operator *operator
	// stays is true for a cluster that was already running and is not stopped.
	stays bool
	// undo contains cleanups in the order of their registration.
	undo []func(context.Context) error
}

func newRig(ctx context.Context, out io.Writer, o options) (*rig, error) {
	bin, err := filepath.Abs(o.bin)
	if err != nil {
		return nil, err
	}
	r := &rig{out: out, bin: bin, userCtx: ctx}
	r.later(r.printRemaining)
	own := []string{bin, filepath.Join(bin, "kube")}
	path := filepath.SplitList(os.Getenv("PATH"))
	if o.cluster == existing {
		// The user's own kubectl has the credentials for their cluster.
		path = append(path, own...)
		r.stays = true
		if r.files, err = os.MkdirTemp("", "chartwright-"); err != nil {
			return nil, err
		}
		r.later(func(context.Context) error { return os.RemoveAll(r.files) })
	} else {
		path = append(own, path...)
		if r.dir, err = filepath.Abs(o.cluster); err != nil {
			return nil, err
		}
		if r.files = r.dir; os.MkdirAll(r.dir, 0o700) != nil {
			return nil, fmt.Errorf("cannot create the folder %s", r.dir)
		}
		if err := r.reserve(); err != nil {
			return nil, err
		}
		r.shell.kubeconfig = filepath.Join(r.dir, "kubeconfig")
	}
	r.shell.path = strings.Join(path, string(filepath.ListSeparator))
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	return r, nil
}

// later registers a cleanup.
func (r *rig) later(undo func(context.Context) error) {
	r.undo = append(r.undo, undo)
}

// stop runs all cleanups in reverse order, including those after a failed one.
func (r *rig) stop() error {
	r.cancel(nil)
	// Clean up also after Ctrl-C.
	ctx := context.WithoutCancel(r.ctx)
	var errs []error
	for _, undo := range slices.Backward(r.undo) {
		errs = append(errs, undo(ctx))
	}
	r.undo = nil
	return errors.Join(errs...)
}

// sayWhatStays prints how to remove what remains in the cluster.
func (r *rig) printRemaining(context.Context) error {
	switch {
	case !r.stays || r.operator == nil:
	case r.dir != "":
		sayf(r.out, "The cluster was running before and is not stopped; `make cluster-down` stops it.\n")
	default:
		sayf(r.out, "The CRDs, roles and custom resources remain in the cluster. To remove them, run\n"+
			"`CLUSTER=existing make run` again and, while it is running, `CLUSTER=existing make uninstall`.\n")
	}
	return nil
}

// interrupted reports whether the user has pressed Ctrl-C.
func (r *rig) interrupted() bool {
	return r.userCtx.Err() != nil
}

// explain adds the end of the operator's log to an error.
func (r *rig) explain(err error) error {
	if r.interrupted() {
		return errors.New("interrupted")
	}
	if r.operator == nil {
		return err
	}
	return fmt.Errorf("%w\n\nThe end of the operator's log:\n%s", err, indent(r.operator.tail()))
}

// steps returns the steps that start the cluster and the operator.
func (r *rig) steps() []step {
	var steps []step
	if r.dir != "" {
		steps = append(steps, step{line: "start a real Kubernetes on this machine", about: "5 s", do: r.startCluster})
	}
	return append(steps,
		step{line: "connect to the cluster", do: r.connect},
		step{line: "create the CRDs, the namespace and the roles of config/default", do: r.applyConfig},
		step{line: "start bin/chartwright as ServiceAccount " + account.String(), do: r.startOperator},
	)
}

// connect creates the client.
func (r *rig) connect(context.Context) (note string, err error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	if r.shell.kubeconfig != "" {
		rules.ExplicitPath = r.shell.kubeconfig
	}
	r.config = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{})
	config, err := r.config.ClientConfig()
	if err != nil {
		return "", fmt.Errorf("no cluster configured: set KUBECONFIG: %w", err)
	}
	config.QPS = -1
	if r.namespace, _, err = r.config.Namespace(); err != nil {
		return "", err
	}
	r.client, err = client.New(config, client.Options{})
	return "", err
}
