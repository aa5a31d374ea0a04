package local

import "strconv"

// quickly removes the client-side rate limits of controllers. They protect an
// API server with many clients, but would only slow down tests.
var quickly = []string{"--kube-api-qps=1000", "--kube-api-burst=2000"}

// controllerManagerPart runs all default controllers, each with its own
// ServiceAccount as in a common cluster, so that missing permissions show.
func (p *plan) controllerManagerPart(port *reservation) *part {
	f := p.folder
	own := p.componentPart(controllerManagerName, port)
	own.args = append(own.args,
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+f.key(serviceAccountName),
		"--root-ca-file="+f.cert(caName),
		"--cluster-signing-cert-file="+f.cert(caName),
		"--cluster-signing-key-file="+f.key(caName),
		"--service-cluster-ip-range="+p.serviceRange(),
		"--concurrent-gc-syncs=30",
		// On a busy machine, nodes must not become unready.
		"--node-monitor-grace-period=5m",
	)
	return own
}

// schedulerPart returns the scheduler.
func (p *plan) schedulerPart(port *reservation) *part {
	return p.componentPart(schedulerName, port)
}

// componentPart returns the common configuration of the controller manager and
// the scheduler. Each has only one replica and uses no leader election.
func (p *plan) componentPart(name string, port *reservation) *part {
	f := p.folder
	kubeconfig := f.configFile(name + ".kubeconfig")
	return &part{
		name:    name,
		program: kubeProgram(p.Bin, name),
		health:  "https://" + address(port.port) + "/healthz",
		ports:   []*reservation{port},
		args: append([]string{
			"--bind-address=" + loopback,
			"--secure-port=" + strconv.Itoa(port.port),
			"--tls-cert-file=" + f.cert(servingName),
			"--tls-private-key-file=" + f.key(servingName),
			"--kubeconfig=" + kubeconfig,
			"--authentication-kubeconfig=" + kubeconfig,
			"--authorization-kubeconfig=" + kubeconfig,
			"--leader-elect=false",
		}, quickly...),
	}
}
