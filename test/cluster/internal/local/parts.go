package local

import (
	"context"

	"github.com/chartwright/chartwright/test/cluster/internal/node"
)

// Names of the components, which are also the names of their programs.
const (
	etcdName              = "etcd"
	apiServerName         = "kube-apiserver"
	controllerManagerName = "kube-controller-manager"
	schedulerName         = "kube-scheduler"
	kwokName              = "kwok"
	nodeName              = "node"
	cloudName             = "cloud"
)

// part is one component of the cluster.
type part struct {
	name    string
	program string
	args    []string
	// health is a URL that responds with 200 when the component is ready.
	health string
	// ports are reserved until the component starts.
	ports []*reservation
}

// plan contains all components of a cluster, and their common configuration.
type plan struct {
	Options
	folder folder
	// server is the address of the API server.
	server string

	etcd, apiServer, controllerManager, scheduler *part
	// kwok simulates the nodes and the cloud.
	kwok *part
	// network, node and cloud replace kwok if the cluster runs containers.
	network *node.Network
	node    *part
	cloud   *part
	// images are the archives that the node imports.
	images []string
}

// newPlan reserves the ports of all components. close releases the ports of
// components that were never started.
func newPlan(ctx context.Context, options Options, network *node.Network) (*plan, error) {
	p := &plan{Options: options, folder: folder(options.Dir), network: network}
	var ports []*reservation
	for i, wanted := range []int{options.Port, 0, 0, 0, 0, 0} {
		host := loopback
		if i == 0 {
			host = p.apiHost()
		}
		port, err := reserve(ctx, host, wanted)
		if err != nil {
			closeAll(ports)
			return nil, err
		}
		ports = append(ports, port)
	}
	api, etcdClient, etcdPeer, controllers, scheduler, nodes := ports[0], ports[1], ports[2], ports[3], ports[4], ports[5]

	p.server = "https://" + api.address()
	p.etcd = p.etcdPart(etcdClient, etcdPeer)
	p.apiServer = p.apiServerPart(api, etcdClient.port)
	p.controllerManager = p.controllerManagerPart(controllers)
	p.scheduler = p.schedulerPart(scheduler)
	if p.Containers {
		p.node, p.cloud = p.nodePart(), p.cloudPart(nodes)
	} else {
		p.kwok = p.kwokPart(nodes)
	}
	return p, nil
}

// close releases all ports. It may be called twice.
func (p *plan) close() {
	for _, part := range []*part{p.etcd, p.apiServer, p.controllerManager, p.scheduler, p.kwok, p.cloud} {
		if part != nil {
			closeAll(part.ports)
		}
	}
}

func closeAll(ports []*reservation) {
	for _, port := range ports {
		port.release()
	}
}
