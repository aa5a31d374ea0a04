package harness

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// imageUser is the user of the operator's image.
const imageUser = 65532

// enterEmptyRoot gives the process the file system of the image: a root folder
// with only the operator's binary and a kubeconfig. There are no certificates,
// no users, no /tmp and no /proc. Users other than root need user namespaces
// for this.
func (o *Operator) enterEmptyRoot(cmd *exec.Cmd) error {
	root, err := os.MkdirTemp("", "chartwright-image-")
	if err != nil {
		return err
	}
	o.env.t.Cleanup(func() { _ = os.RemoveAll(root) })
	for name, source := range map[string]string{"chartwright": o.options.Program, "kubeconfig": o.kubeconfig} {
		data, err := os.ReadFile(source)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(root, name), data, 0o600); err != nil {
			return err
		}
		if err := os.Chmod(filepath.Join(root, name), 0o555); err != nil {
			return err
		}
	}
	if err := os.Chmod(root, 0o555); err != nil {
		return err
	}
	cmd.Path, cmd.Dir = "/chartwright", "/"
	// Container runtimes set HOME to / for a user that is not in /etc/passwd.
	cmd.Env = append([]string{"HOME=/", "KUBECONFIG=/kubeconfig", "WATCH_NAMESPACE=" + o.env.Namespace}, o.options.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: imageUser, Gid: imageUser}}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: imageUser, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: imageUser, HostID: os.Getgid(), Size: 1}}
	}
	return nil
}
