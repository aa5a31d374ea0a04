package node

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// hidden are folders of this machine that the node replaces with its own,
// because programs of the node write files there at fixed paths.
var hidden = []string{"/run", "/var/lib", "/var/log"}

// sysctls are the settings of the kernel that the kubelet changes. They have no
// namespaces, so the node must not change them.
var sysctls = []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops"}

// CheckFolder returns an error if the node cannot see the folder.
func CheckFolder(path string) error {
	for _, folder := range hidden {
		if strings.HasPrefix(path+"/", folder+"/") {
			return fmt.Errorf("%s is below %s, which a node replaces with its own folder: use a folder elsewhere", path, folder)
		}
	}
	return nil
}

// mount creates the mounts and the host name of the node.
func (c *Config) mount() error {
	// First, so that this machine does not get these mounts.
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("cannot separate the mounts of the node: %w", err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("cannot mount /proc: %w", err)
	}
	for _, folder := range hidden {
		if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "mode=755"); err != nil {
			return fmt.Errorf("cannot mount %s: %w", folder, err)
		}
	}
	for target, source := range map[string]string{
		"/var/lib/kubelet":    c.kubeletData(),
		"/var/lib/containerd": c.containerdData(),
		"/var/log/pods":       c.podLogs(),
	} {
		if err := os.MkdirAll(target, 0o755); err != nil {
			return err
		}
		if err := bind(source, target); err != nil {
			return err
		}
	}
	if err := bind(c.file("resolv.conf"), "/etc/resolv.conf"); err != nil {
		return err
	}
	if err := copySysctls("/run/sysctl"); err != nil {
		return err
	}
	// The kubelet and containerd mount volumes, which containers must get.
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_SHARED, ""); err != nil {
		return fmt.Errorf("cannot share the mounts of the node with its containers: %w", err)
	}
	return syscall.Sethostname([]byte(Name))
}

// copySysctls replaces settings of the kernel by files with their values.
func copySysctls(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for _, name := range sysctls {
		setting, file := "/proc/sys/"+name, filepath.Join(folder, strings.ReplaceAll(name, "/", "."))
		value, err := os.ReadFile(setting)
		if err != nil {
			return err
		}
		if err := os.WriteFile(file, value, 0o600); err != nil {
			return err
		}
		if err := bind(file, setting); err != nil {
			return err
		}
	}
	return nil
}

func bind(source, target string) error {
	if err := syscall.Mount(source, target, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("cannot mount %s at %s: %w", source, target, err)
	}
	return nil
}
