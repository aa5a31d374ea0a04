package local

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"
)

// Up starts a cluster and returns when it is ready. Its components continue to
// run. A running cluster is not changed, and the remains of a crashed one are
// removed first. A failed start leaves no processes behind.
func Up(ctx context.Context, options Options) (kubeconfig string, err error) {
	if err := options.complete(); err != nil {
		return "", err
	}
	f := folder(options.Dir)
	release, err := f.acquire()
	if err != nil {
		return "", err
	}
	defer release()

	running, err := settle(ctx, f, options.Progress)
	if err != nil || running {
		return f.kubeconfig(), err
	}
	if err := f.prepare(); err != nil {
		return "", err
	}
	network, err := reserveNetwork(f, options)
	if err != nil {
		return "", err
	}
	plan, err := newPlan(ctx, options, network)
	if err != nil {
		return "", errors.Join(err, stop(context.WithoutCancel(ctx), f, func(string, ...any) {}))
	}
	defer plan.close()
	if err := plan.boot(ctx); err != nil {
		// The caller's context may be canceled: clean up anyway.
		return "", errors.Join(err, stop(context.WithoutCancel(ctx), f, func(string, ...any) {}))
	}
	return f.kubeconfig(), nil
}

// settle checks whether the cluster is running, and stops the remains of a
// cluster that is only partly running.
func settle(ctx context.Context, f folder, progress func(string, ...any)) (running bool, err error) {
	status, err := Check(ctx, string(f))
	if errors.Is(err, errNoCluster) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if status.Up() {
		progress("The cluster in %s is already running at %s.", f, status.Server)
		return true, nil
	}
	progress("Removing the remains of a cluster in %s.", f)
	return false, stop(ctx, f, progress)
}

// boot starts the components in the order of their dependencies.
func (p *plan) boot(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)

	for _, prepare := range []func() error{p.issueCredentials, p.writeAudit, p.writeKwok, p.writeNode} {
		if err := prepare(); err != nil {
			return err
		}
	}
	health, err := p.folder.healthClient()
	if err != nil {
		return err
	}
	s := &starter{plan: p, client: health, fail: fail, state: &state{Server: p.server, Nodes: p.Nodes, Network: p.network}}

	// The node starts first, because it imports images while the others start.
	if err := s.startNode(); err != nil {
		return err
	}
	for _, part := range []*part{p.etcd, p.apiServer} {
		if err := s.start(part); err != nil {
			return err
		}
		if err := s.await(ctx, part); err != nil {
			return err
		}
	}
	others := []*part{p.controllerManager, p.scheduler, p.kwok}
	if p.Containers {
		others[len(others)-1] = p.cloud
	}
	for _, part := range others {
		if err := s.start(part); err != nil {
			return err
		}
	}
	client, err := p.folder.client()
	if err != nil {
		return err
	}
	if err := p.fill(ctx, client); err != nil {
		return err
	}
	if p.Containers {
		others = append(others, p.node)
	}
	if err := s.awaitAll(ctx, others...); err != nil {
		return err
	}
	if err := p.awaitContents(ctx, client); err != nil {
		return err
	}
	s.state.Ready = true
	return p.folder.writeState(s.state)
}

// fill creates the initial objects of a cluster.
func (p *plan) fill(ctx context.Context, client kubernetes.Interface) error {
	if p.Containers {
		return p.applyAddons(ctx)
	}
	if err := createNodes(ctx, client, p.Nodes); err != nil {
		return err
	}
	if err := createStorageClass(ctx, client, storageClassFile(p.Bin)); err != nil {
		return fmt.Errorf("cannot create the StorageClass: %w", err)
	}
	return nil
}

// awaitContents waits for objects that controllers create.
func (p *plan) awaitContents(ctx context.Context, client kubernetes.Interface) error {
	began := time.Now()
	if err := waitFor(ctx, "the default ServiceAccount", hasServiceAccount(client)); err != nil {
		return err
	}
	if err := waitFor(ctx, "the nodes", hasNodes(client, p.Nodes)); err != nil {
		return err
	}
	if p.Containers {
		if err := waitFor(ctx, "the name server", hasNameServer(client)); err != nil {
			return err
		}
	}
	p.Progress("%-24s ready after %4.1f s  %d, with the default ServiceAccount and StorageClass", "nodes", time.Since(began).Seconds(), p.Nodes)
	return nil
}
