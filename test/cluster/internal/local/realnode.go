package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/chartwright/chartwright/test/cluster/internal/node"
	"github.com/chartwright/chartwright/test/cluster/internal/pki"
)

// Names of files in the folder with the certificates.
const (
	kubeletServingName = "kubelet-serving"
	kubeletClientName  = "kubelet-client"
)

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

// nodePart returns the node. Its program is this program, which starts the node in new
// namespaces.
func (p *plan) nodePart() *part {
	return &part{
		name:    nodeName,
		program: ownProgram(p.Bin),
		args:    []string{"machine", p.folder.nodeConfig()},
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
	return p.nodeConfig().Write()
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
