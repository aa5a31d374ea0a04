package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const cgroupRoot = "/sys/fs/cgroup"

// cgroups returns the folders of the cgroup of a node: one in version 2, one
// for each controller in version 1. A hybrid of both has one more without
// controllers.
func (n Network) cgroups() ([]string, error) {
	if _, err := os.Stat(filepath.Join(cgroupRoot, "cgroup.controllers")); err == nil {
		return []string{filepath.Join(cgroupRoot, n.Cgroup())}, nil
	}
	controllers, err := os.ReadDir(cgroupRoot)
	if err != nil {
		return nil, err
	}
	var folders []string
	for _, controller := range controllers {
		if controller.IsDir() {
			folders = append(folders, filepath.Join(cgroupRoot, controller.Name(), n.Cgroup()))
		}
	}
	return folders, nil
}

// createCgroups creates the cgroup that the kubelet requires.
func (n Network) createCgroups() error {
	folders, err := n.cgroups()
	if err != nil {
		return err
	}
	for _, folder := range folders {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return fmt.Errorf("cannot create a cgroup: %w", err)
		}
		if filepath.Base(filepath.Dir(folder)) != "cpuset" {
			continue
		}
		// In version 1, a new cgroup has no processors until they are set.
		for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
			value, err := os.ReadFile(filepath.Join(folder, "..", name))
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(folder, name), value, 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}

// RemoveCgroups removes the cgroups of all pods. The kernel needs a moment to
// remove processes that were killed from their cgroups.
func (n Network) RemoveCgroups() error {
	folders, err := n.cgroups()
	if err != nil {
		return err
	}
	for _, folder := range folders {
		for attempt := 0; ; attempt++ {
			err := removeCgroup(folder)
			if err == nil {
				break
			}
			if attempt == 100 || !errors.Is(err, syscall.EBUSY) {
				return fmt.Errorf("cannot remove a cgroup: %w", err)
			}
			time.Sleep(pollInterval)
		}
	}
	return nil
}

// removeCgroup removes the folders of a cgroup. Their files belong to the
// kernel.
func removeCgroup(folder string) error {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		if err := removeCgroup(filepath.Join(folder, entry.Name())); err != nil {
			return err
		}
	}
	if err := syscall.Rmdir(folder); err != nil && !errors.Is(err, syscall.ENOENT) {
		return &os.PathError{Op: "rmdir", Path: folder, Err: err}
	}
	return nil
}
