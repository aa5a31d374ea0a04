package local

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"
)

// Up starts a cluster and returns when it is ready for use; its parts go on
// running. A cluster that runs already is left alone, and what is left of one
// that crashed is cleaned up first. A start that fails leaves nothing running.
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
	plan, err := newPlan(ctx, options)
	if err != nil {
		return "", err
	}
	defer plan.close()
	if err := plan.boot(ctx); err != nil {
		// The caller may have been interrupted: the clean-up must not be.
		return "", errors.Join(err, stop(context.WithoutCancel(ctx), f, func(string, ...any) {}))
	}
	return f.kubeconfig(), nil
}

// settle finds out whether the cluster runs already, and stops what is left of
// it if it does only in part.
func settle(ctx context.Context, f folder, progress func(string, ...any)) (running bool, err error) {
	status, err := Check(ctx, string(f))
	if errors.Is(err, errNoCluster) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if status.Up() {
		progress("The cluster in %s runs already, at %s.", f, status.Server)
		return true, nil
	}
	progress("Cleaning up what is left of a cluster in %s.", f)
	return false, stop(ctx, f, progress)
}

// boot starts every part in the order that they need each other in.
func (p *plan) boot(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)

	for _, prepare := range []func() error{p.issueCredentials, p.writeAudit, p.writeKwok} {
		if err := prepare(); err != nil {
			return err
		}
	}
	health, err := p.folder.healthClient()
	if err != nil {
		return err
	}
	s := &starter{plan: p, client: health, fail: fail, state: &state{Server: p.server, Nodes: p.Nodes}}

	for _, part := range []*part{p.etcd, p.apiServer} {
		if err := s.start(part); err != nil {
			return err
		}
		if err := s.await(ctx, part); err != nil {
			return err
		}
	}
	others := []*part{p.controllerManager, p.scheduler, p.kwok}
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
	if err := s.awaitAll(ctx, others...); err != nil {
		return err
	}
	if err := p.awaitContents(ctx, client); err != nil {
		return err
	}
	s.state.Ready = true
	return p.folder.writeState(s.state)
}

// fill gives the cluster what a new one has.
func (p *plan) fill(ctx context.Context, client kubernetes.Interface) error {
	if err := createNodes(ctx, client, p.Nodes); err != nil {
		return err
	}
	if err := createStorageClass(ctx, client, storageClassFile(p.Bin)); err != nil {
		return fmt.Errorf("cannot make the StorageClass: %w", err)
	}
	return nil
}

// awaitContents waits for what the controllers make.
func (p *plan) awaitContents(ctx context.Context, client kubernetes.Interface) error {
	began := time.Now()
	if err := waitFor(ctx, "the default ServiceAccount", hasServiceAccount(client)); err != nil {
		return err
	}
	if err := waitFor(ctx, "the nodes", hasNodes(client, p.Nodes)); err != nil {
		return err
	}
	p.Progress("%-24s ready after %4.1f s  %d, with the default ServiceAccount and StorageClass", "nodes", time.Since(began).Seconds(), p.Nodes)
	return nil
}
