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

// existing is the --cluster that is there already.
const existing = "existing"

type options struct {
	cluster string
	bin     string
}

// rig is a cluster with the operator at work on it.
type rig struct {
	// ctx ends with Ctrl-C, and with the operator; person with Ctrl-C alone.
	ctx, person context.Context
	cancel      context.CancelCauseFunc
	out         io.Writer

	bin string
	// dir is the folder of the local cluster; empty for an existing one.
	dir string
	// files is where the operator's log and kubeconfig are.
	files string
	shell shell

	// client is the person's own, namespace the one that kubectl would use.
	client    client.Client
	config    clientcmd.ClientConfig
	namespace string

	operator *operator
	// stays is true for a cluster that ran before and goes on running.
	stays bool
	// undo holds what is to be stopped, the newest last.
	undo []func(context.Context) error
}

func newRig(ctx context.Context, out io.Writer, o options) (*rig, error) {
	bin, err := filepath.Abs(o.bin)
	if err != nil {
		return nil, err
	}
	r := &rig{out: out, bin: bin, person: ctx}
	r.later(r.sayWhatStays)
	own := []string{bin, filepath.Join(bin, "kube")}
	path := filepath.SplitList(os.Getenv("PATH"))
	if o.cluster == existing {
		// A person's own kubectl knows how to log in to their cluster.
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
			return nil, fmt.Errorf("cannot make the folder %s", r.dir)
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

// later remembers something to be done in the end.
func (r *rig) later(undo func(context.Context) error) {
	r.undo = append(r.undo, undo)
}

// stop ends everything that was started, the newest first, whatever fails.
func (r *rig) stop() error {
	r.cancel(nil)
	// Ctrl-C is why this runs and must not keep it from its work.
	ctx := context.WithoutCancel(r.ctx)
	var errs []error
	for _, undo := range slices.Backward(r.undo) {
		errs = append(errs, undo(ctx))
	}
	r.undo = nil
	return errors.Join(errs...)
}

// sayWhatStays says how to get rid of what is left when all has stopped.
func (r *rig) sayWhatStays(context.Context) error {
	switch {
	case !r.stays || r.operator == nil:
	case r.dir != "":
		sayf(r.out, "The cluster ran before and goes on running; `make cluster-down` stops it.\n")
	default:
		sayf(r.out, "The kinds and the rights stay in the cluster, and so do custom resources. To remove them, let\n"+
			"`CLUSTER=existing make run` run again, and meanwhile `CLUSTER=existing make uninstall`.\n")
	}
	return nil
}

// interrupted tells whether a person wants it all to end.
func (r *rig) interrupted() bool {
	return r.person.Err() != nil
}

// explain adds to an error what the operator said last.
func (r *rig) explain(err error) error {
	if r.interrupted() {
		return errors.New("interrupted")
	}
	if r.operator == nil {
		return err
	}
	return fmt.Errorf("%w\n\nThe end of the operator's log:\n%s", err, indent(r.operator.tail()))
}

// steps brings the cluster and the operator up.
func (r *rig) steps() []step {
	var steps []step
	if r.dir != "" {
		steps = append(steps, step{line: "start a real Kubernetes on this machine", about: "5 s", do: r.startCluster})
	}
	return append(steps,
		step{line: "connect to the cluster", do: r.connect},
		step{line: "make the kinds, the namespace and the rights of config/default", do: r.applyConfig},
		step{line: "start bin/chartwright as ServiceAccount " + account.String(), do: r.startOperator},
	)
}

// connect makes the client.
func (r *rig) connect(context.Context) (note string, err error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	if r.shell.kubeconfig != "" {
		rules.ExplicitPath = r.shell.kubeconfig
	}
	r.config = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{})
	config, err := r.config.ClientConfig()
	if err != nil {
		return "", fmt.Errorf("there is no cluster to use: set KUBECONFIG: %w", err)
	}
	config.QPS = -1
	if r.namespace, _, err = r.config.Namespace(); err != nil {
		return "", err
	}
	r.client, err = client.New(config, client.Options{})
	return "", err
}
