package node

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// Missing returns what this machine does not have for a node.
func Missing() []string {
	if os.Geteuid() != 0 {
		return []string{"root (run `sudo make test-node`)"}
	}
	var missing []string
	if err := tryNamespaces(); err != nil {
		missing = append(missing, fmt.Sprintf("permission to create namespaces and mounts: %v", err))
	}
	if err := tryCgroup(); err != nil {
		missing = append(missing, fmt.Sprintf("permission to create cgroups: %v", err))
	}
	if _, err := os.Stat("/proc/sys/net/bridge/bridge-nf-call-iptables"); err != nil {
		missing = append(missing, "the kernel module br_netfilter (run `modprobe br_netfilter`)")
	}
	for _, program := range []struct{ name, debian string }{{"runc", "runc"}, {"nft", "nftables"}} {
		if _, err := exec.LookPath(program.name); err != nil {
			missing = append(missing, fmt.Sprintf("%s (Debian package %s)", program.name, program.debian))
		}
	}
	return missing
}

// tryNamespaces runs a program that mounts a file system in new namespaces.
func tryNamespaces() error {
	cmd := exec.Command("mount", "-t", "tmpfs", "tmpfs", "/mnt") //nolint:noctx // it ends immediately
	// Unshareflags, unlike Cloneflags, also keep this machine from getting the
	// mount.
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: Namespaces &^ syscall.CLONE_NEWNS, Unshareflags: syscall.CLONE_NEWNS}
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w %s", err, output)
	}
	return nil
}

// tryCgroup creates and removes a cgroup where the cgroups of a node would be.
func tryCgroup() error {
	folders, err := Network{}.cgroups()
	if err != nil {
		return err
	}
	if len(folders) == 0 {
		return fmt.Errorf("no cgroups in %s", cgroupRoot)
	}
	for _, folder := range folders {
		probe := filepath.Join(filepath.Dir(folder), fmt.Sprintf("chartwright-probe-%d", os.Getpid()))
		if err := os.Mkdir(probe, 0o755); err != nil {
			return err
		}
		if err := os.Remove(probe); err != nil {
			return err
		}
	}
	return nil
}
