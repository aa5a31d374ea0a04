package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// reserve prevents a second run on the same local cluster, because two
// operators of the same name would conflict. The lock ends with this process,
// however the process ends.
func (r *rig) reserve() error {
	file, err := os.OpenFile(filepath.Join(r.dir, "run.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return fmt.Errorf("the operator is already running on the cluster in %s: stop it with Ctrl-C first", r.dir)
		}
		return err
	}
	r.later(func(context.Context) error { return file.Close() })
	return nil
}

// startCluster boots the local cluster, unless it is already running.
func (r *rig) startCluster(ctx context.Context) (note string, err error) {
	if _, err := r.shell.run(ctx, r.clusterCommand("status")); err == nil {
		r.stays = true
		return "It was already running, and is not stopped at the end.", nil
	}
	r.later(func(ctx context.Context) error {
		sayf(r.out, "Stopping the cluster ...\n")
		_, err := r.shell.run(ctx, r.clusterCommand("down"))
		return err
	})
	_, err = r.shell.run(ctx, r.clusterCommand("up"))
	return "", err
}

// clusterCommand returns a command that replaces the shell, so that it receives
// signals.
func (r *rig) clusterCommand(verb string) string {
	return fmt.Sprintf("exec cluster %s --dir '%s'", verb, r.dir)
}
