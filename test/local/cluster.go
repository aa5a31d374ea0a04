package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// reserve keeps a second one from running on the same local cluster: two
// operators of one name would fight. The lock ends with this program, however
// that ends.
func (r *rig) reserve() error {
	file, err := os.OpenFile(filepath.Join(r.dir, "run.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return fmt.Errorf("the operator runs on the cluster in %s already: end that with Ctrl-C first", r.dir)
		}
		return err
	}
	r.later(func(context.Context) error { return file.Close() })
	return nil
}

// startCluster boots the local cluster, or uses it where it runs already.
func (r *rig) startCluster(ctx context.Context) (note string, err error) {
	if _, err := r.shell.run(ctx, r.clusterCommand("status")); err == nil {
		r.stays = true
		return "It runs already, and goes on running in the end.", nil
	}
	r.later(func(ctx context.Context) error {
		sayf(r.out, "Stopping the cluster ...\n")
		_, err := r.shell.run(ctx, r.clusterCommand("down"))
		return err
	})
	_, err = r.shell.run(ctx, r.clusterCommand("up"))
	return "", err
}

// clusterCommand takes the place of the shell, so that a signal reaches it.
func (r *rig) clusterCommand(verb string) string {
	return fmt.Sprintf("exec cluster %s --dir '%s'", verb, r.dir)
}
