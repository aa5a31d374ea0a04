package local

import "strconv"

// quickly lifts the limits that controllers put on their own requests. They
// protect an API server with many clients; here they would only slow tests.
var quickly = []string{"--kube-api-qps=1000", "--kube-api-burst=2000"}

// controllerManagerPart runs every controller that is on by default, each as
// the ServiceAccount that it has in an ordinary cluster, so that missing
// permissions show.
func (p *plan) controllerManagerPart(port *reservation) *part {
	f := p.folder
	own := p.componentPart(controllerManagerName, port)
	own.args = append(own.args,
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+f.key(serviceAccountName),
		"--root-ca-file="+f.cert(caName),
		"--cluster-signing-cert-file="+f.cert(caName),
		"--cluster-signing-key-file="+f.key(caName),
		"--service-cluster-ip-range="+serviceRange,
		"--concurrent-gc-syncs=30",
		// A machine that is busy with tests must not make its nodes look dead.
		"--node-monitor-grace-period=5m",
	)
	return own
}

// schedulerPart places pods on nodes.
func (p *plan) schedulerPart(port *reservation) *part {
	return p.componentPart(schedulerName, port)
}

// componentPart is what the controller manager and the scheduler have in
// common: each is the only one of its kind, so it elects no leader.
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
