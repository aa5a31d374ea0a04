package node

import (
	"fmt"
	"net/netip"
)

// Network contains the addresses of one node. It is a /16 network below
// 10.0.0.0/8: the first quarter for the host and the node, the others for pods,
// Services and load balancers.
type Network struct {
	// Second is the second byte of all addresses.
	Second int `json:"second"`
}

// Networks have second bytes of this range, which common installations of
// Kubernetes do not use by default.
const (
	firstNetwork = 200
	lastNetwork  = 239
)

// Host is the address of this machine, at which the API server listens.
func (n Network) Host() string { return n.address(0, 1) }

// Node is the address of the node.
func (n Network) Node() string { return n.address(0, 2) }

// FirstService is the address of the Service of the API server.
func (n Network) FirstService() string { return n.address(128, 1) }

// DNS is the address of the Service of the name server.
func (n Network) DNS() string { return n.address(128, 10) }

// All is the range of all addresses.
func (n Network) All() string { return n.address(0, 0) + "/16" }

// Pods is the range of the addresses of pods.
func (n Network) Pods() string { return n.address(64, 0) + "/18" }

// Services is the range of the cluster addresses of Services.
func (n Network) Services() string { return n.address(128, 0) + "/18" }

// LoadBalancer returns the load balancer address of the Service with the given
// cluster address: both have the same position in their ranges, so the address
// is unique.
func (n Network) LoadBalancer(clusterIP string) (string, error) {
	address, err := netip.ParseAddr(clusterIP)
	if err != nil || !netip.MustParsePrefix(n.Services()).Contains(address) {
		return "", fmt.Errorf("cluster address: got %q, want an address in %s", clusterIP, n.Services())
	}
	bytes := address.As4()
	return n.address(int(bytes[2])+64, int(bytes[3])), nil
}

// Cgroup is the name of the cgroup that contains the cgroups of all pods.
func (n Network) Cgroup() string { return fmt.Sprintf("chartwright-node-%d", n.Second) }

// link is the name of the bridge on this machine that connects the node. Its
// creation reserves the network, because names of links are unique.
func (n Network) link() string { return fmt.Sprintf("cwnode%d", n.Second) }

// port is the name of the end of the node's network interface on this machine.
func (n Network) port() string { return n.link() + "n" }

func (n Network) address(third, fourth int) string {
	return fmt.Sprintf("10.%d.%d.%d", n.Second, third, fourth)
}
