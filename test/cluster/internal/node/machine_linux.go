package node

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/chartwright/chartwright/test/cluster/internal/process"
)

// Namespaces are the namespaces that a node does not share with this machine.
const Namespaces = syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS

const (
	pollInterval = 50 * time.Millisecond
	// containerdTimeout is generous, for machines with slow disks.
	containerdTimeout = time.Minute
	// apiTimeout includes the start of etcd and of the API server.
	apiTimeout = 5 * time.Minute
)

const containerdSocket = "/run/containerd/containerd.sock"

// Start starts the first process of a node and connects it to the network.
// program and args must lead to a call of Run.
func Start(c *Config, program string, args ...string) (*process.Process, error) {
	if err := c.Network.createCgroups(); err != nil {
		return nil, err
	}
	attributes := &syscall.SysProcAttr{Cloneflags: Namespaces}
	started, err := process.StartWith(attributes, filepath.Join(c.Logs, "node.log"), program, args...)
	if err != nil {
		return nil, err
	}
	return started, c.Network.Connect(started.Ref.PID)
}

// StartAgain starts a node that Start started before and whose processes have
// ended. It keeps the data of the node and its address.
func StartAgain(file, program string, args ...string) (*process.Process, error) {
	c, err := read(file)
	if err != nil {
		return nil, err
	}
	// The kubelet would wait several seconds for each container of an old cgroup.
	if err := errors.Join(c.Network.disconnect(), c.Network.RemoveCgroups()); err != nil {
		return nil, err
	}
	return Start(c, program, args...)
}

// Run is the first process of a node: it starts the programs and reaps all
// processes that end. It returns if a program ends, because the kernel then ends
// all other processes of the node.
func Run(file string) error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	go func() {
		<-stop
		os.Exit(0)
	}()

	c, err := read(file)
	if err != nil {
		return err
	}
	for _, prepare := range []func() error{c.mount, c.connect, c.setEnvironment} {
		if err := prepare(); err != nil {
			return err
		}
	}
	programs := map[int]string{}
	if err := c.start(programs, "containerd", "--config", c.file("containerd.toml")); err != nil {
		return err
	}
	if err := waitForListener("unix", containerdSocket, containerdTimeout); err != nil {
		return err
	}
	if err := c.importImages(); err != nil {
		return err
	}
	if err := waitForListener("tcp", c.Server, apiTimeout); err != nil {
		return err
	}
	err = errors.Join(
		c.start(programs, "kubelet", "--config", c.file("kubelet.yaml"), "--kubeconfig", c.Kubelet,
			"--hostname-override", Name, "--node-ip", c.Network.Node(), "--v=2"),
		c.start(programs, "kube-proxy", "--config", c.file("kube-proxy.yaml")))
	if err != nil {
		return err
	}
	return reap(programs)
}

// importImages imports the image archives that containerd does not have yet.
func (c *Config) importImages() error {
	for _, archive := range c.Images {
		info, err := os.Stat(archive)
		if err != nil {
			return err
		}
		// Archives are replaced when their inputs change.
		stamp := fmt.Sprintf("%d %s", info.Size(), info.ModTime())
		file := filepath.Join(c.imported(), filepath.Base(archive))
		known, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if string(known) == stamp {
			continue
		}
		cmd := exec.Command("ctr", "--namespace", "k8s.io", "images", "import", "--local", archive) //nolint:noctx // it ends with the node
		if output, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("cannot import %s: %w\n%s", archive, err, output)
		}
		if err := os.WriteFile(file, []byte(stamp), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// setEnvironment sets the search path of the programs, and a folder for
// temporary files that ends with the node.
func (c *Config) setEnvironment() error {
	folders := append(append([]string{}, c.Programs...), "/usr/local/sbin", "/usr/sbin", "/sbin", os.Getenv("PATH"))
	if err := os.Setenv("PATH", strings.Join(folders, string(filepath.ListSeparator))); err != nil {
		return err
	}
	temporary := "/run/tmp"
	if err := os.MkdirAll(temporary, 0o700); err != nil {
		return err
	}
	return os.Setenv("TMPDIR", temporary)
}

// start starts a program whose end is the end of the node.
func (c *Config) start(programs map[int]string, name string, args ...string) error {
	log, err := os.OpenFile(filepath.Join(c.Logs, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()                  //nolint:errcheck // the program has its own handle
	cmd := exec.Command(name, args...) //nolint:noctx // it runs until the node ends
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("cannot start %s: %w", name, err)
	}
	programs[cmd.Process.Pid] = name
	return nil
}

// connect waits for the network interface that Connect creates, and sets it up.
func (c *Config) connect() error {
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	if err := netlink.LinkSetUp(loopback); err != nil {
		return err
	}
	var link netlink.Link
	for link == nil {
		link, err = netlink.LinkByName(nodeLink)
		if err != nil && !errors.As(err, &netlink.LinkNotFoundError{}) {
			return err
		}
		time.Sleep(pollInterval)
	}
	if err := addAddress(link, c.Network.Node()); err != nil {
		return err
	}
	if err := netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: net.ParseIP(c.Network.Host())}); err != nil {
		return err
	}
	// The second file makes answers between two pods pass the rules of Services.
	for _, file := range []string{"/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/bridge/bridge-nf-call-iptables"} {
		if err := os.WriteFile(file, []byte("1"), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// waitForListener waits until a connection is accepted.
func waitForListener(network, address string, timeout time.Duration) error {
	deadline := time.Now().Add(timeout)
	for {
		connection, err := net.DialTimeout(network, address, time.Second) //nolint:noctx // it has a timeout
		if err == nil {
			return connection.Close()
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("nothing listens on %s after %s: %w", address, timeout, err)
		}
		time.Sleep(pollInterval)
	}
}

// reap waits for all processes that end, until one of the programs ends.
func reap(programs map[int]string) error {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot wait for processes: %w", err)
		}
		if name, known := programs[pid]; known {
			return fmt.Errorf("%s ended (exit code %d, signal %d): see its log", name, status.ExitStatus(), status.Signal())
		}
	}
}
