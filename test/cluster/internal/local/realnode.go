package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/chartwright/chartwright/test/cluster/internal/node"
	"github.com/chartwright/chartwright/test/cluster/internal/pki"
	"github.com/chartwright/chartwright/test/cluster/internal/process"
)

// Names of files in the folder with the certificates.
const (
	kubeletServingName = "kubelet-serving"
	kubeletClientName  = "kubelet-client"
)

const nodeConfigFile = "node.json"

// nodePrograms returns the programs of a real node.
func nodePrograms(bin string) []string {
	return []string{
		kubeProgram(bin, "kubelet"), kubeProgram(bin, "kube-proxy"),
		filepath.Join(nodeFolder(bin), "containerd"), filepath.Join(cniFolder(bin), "bridge"),
	}
}

// reserveNetwork reserves the addresses of a real node, and stores them, so that
// they can be released after any later failure.
func reserveNetwork(f folder, options Options) (*node.Network, error) {
	if !options.Containers {
		return nil, nil //nolint:nilnil // a simulated node has no network
	}
	for _, path := range []string{options.Dir, options.Bin} {
		if err := node.CheckFolder(path); err != nil {
			return nil, err
		}
	}
	network, err := node.Reserve(string(f))
	if err != nil {
		return nil, err
	}
	if err := f.writeState(&state{Network: &network}); err != nil {
		return nil, errors.Join(err, network.Release())
	}
	return &network, nil
}

// apiHost is the address of the API server.
func (p *plan) apiHost() string {
	if p.network != nil {
		return p.network.Host()
	}
	return loopback
}

func (p *plan) serviceRange() string {
	if p.network != nil {
		return p.network.Services()
	}
	return serviceRange
}

// firstService is the address of the Service of the API server.
func (p *plan) firstService() string {
	if p.network != nil {
		return p.network.FirstService()
	}
	return serviceFirst
}

// issueNode creates the certificates for requests from the API server to the
// kubelet.
func (p *plan) issueNode(authority *pki.Authority) error {
	serving, err := authority.Server(node.Name, []string{node.Name}, []net.IP{net.ParseIP(p.network.Node())})
	if err != nil {
		return err
	}
	if err := serving.Write(filepath.Join(p.folder.pki(), kubeletServingName)); err != nil {
		return err
	}
	client, err := authority.Client("kube-apiserver-kubelet-client", mastersGroup)
	if err != nil {
		return err
	}
	return client.Write(filepath.Join(p.folder.pki(), kubeletClientName))
}

// nodeClients are the clients that replace kwok.
func (p *plan) nodeClients() []clientLogin {
	return []clientLogin{
		{p.folder.configFile("kubelet.kubeconfig"), "system:node:" + node.Name, []string{"system:nodes"}},
		{p.folder.configFile("kube-proxy.kubeconfig"), "system:kube-proxy", nil},
		{p.folder.configFile(cloudName + ".kubeconfig"), "system:cloud", []string{mastersGroup}},
	}
}

// nodePart returns the node. Its program is this program: see Machine.
func (p *plan) nodePart() *part {
	return &part{
		name:    nodeName,
		program: ownProgram(p.Bin),
		args:    []string{"machine", filepath.Join(p.folder.node(), "config", nodeConfigFile)},
		health:  fmt.Sprintf("http://%s:%d/healthz", p.network.Node(), node.HealthPort),
	}
}

// cloudPart returns the controller of volumes and load balancers.
func (p *plan) cloudPart(port *reservation) *part {
	return &part{
		name:    cloudName,
		program: ownProgram(p.Bin),
		args: []string{
			"cloud", "--kubeconfig=" + p.folder.configFile(cloudName+".kubeconfig"), "--volumes=" + p.nodeConfig().Volumes(),
			fmt.Sprintf("--network=%d", p.network.Second), "--address=" + address(port.port),
		},
		health: "http://" + address(port.port),
		ports:  []*reservation{port},
	}
}

// ownProgram is the program that contains this package.
func ownProgram(bin string) string { return filepath.Join(bin, "cluster") }

// nodeConfig returns the configuration of the node.
func (p *plan) nodeConfig() *node.Config {
	f := p.folder
	return &node.Config{
		Network: *p.network, Dir: f.node(), Logs: f.logs(), Images: p.images,
		Programs: []string{nodeFolder(p.Bin), filepath.Join(p.Bin, "kube")}, CNI: cniFolder(p.Bin),
		Server: strings.TrimPrefix(p.server, "https://"),
		CA:     f.cert(caName), Cert: f.cert(kubeletServingName), Key: f.key(kubeletServingName),
		Kubelet: f.configFile("kubelet.kubeconfig"), Proxy: f.configFile("kube-proxy.kubeconfig"),
	}
}

// writeNode writes the configuration of the node.
func (p *plan) writeNode() error {
	if !p.Containers {
		return nil
	}
	if p.Images != "" {
		archives, err := filepath.Glob(filepath.Join(p.Images, "*.tar"))
		if err != nil {
			return err
		}
		if len(archives) == 0 {
			return fmt.Errorf("--images: %s contains no archives (*.tar)", p.Images)
		}
		p.images = archives
	}
	_, err := p.nodeConfig().Write()
	return err
}

// startNode starts the node, if it is not simulated.
func (s *starter) startNode() error {
	p := s.plan
	if !p.Containers {
		return nil
	}
	started, err := node.Start(p.nodeConfig(), p.node.program, p.node.args...)
	if started == nil {
		return err
	}
	return errors.Join(err, s.record(p.node, p.folder.log(p.node.name), started))
}

// applyAddons creates the objects that every cluster with containers has.
func (p *plan) applyAddons(ctx context.Context) error {
	text, err := p.nodeConfig().Render("addons.yaml")
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, kubeProgram(p.Bin, "kubectl"), "--kubeconfig", p.folder.kubeconfig(), "apply", "-f", "-")
	cmd.Stdin = strings.NewReader(text)
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot create the name server and the class of volumes: %w\n%s", err, output)
	}
	return nil
}

// hasNameServer returns a check that names of Services can be resolved.
func hasNameServer(client kubernetes.Interface) func(context.Context) error {
	return func(ctx context.Context) error {
		server, err := client.AppsV1().Deployments(metav1.NamespaceSystem).Get(ctx, "coredns", metav1.GetOptions{})
		if err != nil {
			return err
		}
		return available(server)
	}
}

// hasHeartbeat returns a check that the kubelet reported its status after the
// given time, which the API server stores in seconds.
func hasHeartbeat(client kubernetes.Interface, after time.Time) func(context.Context) error {
	return func(ctx context.Context) error {
		found, err := client.CoreV1().Nodes().Get(ctx, node.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range found.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.LastHeartbeatTime.Time.After(after.Truncate(time.Second)) && nodeReady(found) {
				return nil
			}
		}
		return fmt.Errorf("%s has not reported its status", node.Name)
	}
}

func available(deployment *appsv1.Deployment) error {
	if deployment.Status.AvailableReplicas == 0 {
		return fmt.Errorf("deployment %s has no available replicas", deployment.Name)
	}
	return nil
}

// removeNode removes what is left of a real node when its processes have ended,
// and checks that nothing is left.
func removeNode(f folder, s *state) error {
	if s.Network == nil {
		return nil
	}
	if err := errors.Join(s.Network.Release(), s.Network.RemoveCgroups()); err != nil {
		return err
	}
	var left []string
	var err error
	// The kernel removes the namespaces shortly after their last process.
	for deadline := time.Now().Add(grace); ; time.Sleep(pollInterval) {
		left, err = s.Network.Leftovers(f.node())
		if err != nil || len(left) == 0 || time.Now().After(deadline) {
			break
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("the node left something on this machine:\n%s", strings.Join(left, "\n"))
	}
	return err
}

// RestartNode kills all processes of the real node, including all containers,
// and starts it again, like a machine whose power fails.
func RestartNode(ctx context.Context, dir string, timeout time.Duration) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	f := folder(dir)
	release, err := f.acquire()
	if err != nil {
		return err
	}
	defer release()
	s, err := f.readState()
	if err != nil {
		return err
	}
	index := -1
	for i := range s.Parts {
		if s.Parts[i].Name == nodeName {
			index = i
		}
	}
	if index < 0 {
		return fmt.Errorf("%s has no real node: start it with `cluster up --containers`", f)
	}
	old := s.Parts[index]
	if err := process.Kill(ctx, old.Process); err != nil {
		return err
	}
	killed := time.Now()
	config := filepath.Join(f.node(), "config", nodeConfigFile)
	program, err := os.Executable()
	if err != nil {
		return err
	}
	started, err := node.StartAgain(config, program, "machine", config)
	if started != nil {
		s.Parts[index].Process = started.Ref
		err = errors.Join(err, f.writeState(s))
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	client, err := f.healthClient()
	if err != nil {
		return err
	}
	if err := waitFor(ctx, nodeName, func(ctx context.Context) error { return healthy(ctx, client, old.Health) }); err != nil {
		return err
	}
	api, err := f.client()
	if err != nil {
		return err
	}
	return waitFor(ctx, "the status of the node", hasHeartbeat(api, killed))
}
