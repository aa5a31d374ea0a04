package local

import (
	"os"
	"path/filepath"
	"strconv"
)

// serviceRange is the range of the Services' addresses in a cluster with
// simulated nodes.
const (
	serviceRange  = "10.96.0.0/16"
	serviceFirst  = "10.96.0.1"
	issuer        = "https://kubernetes.default.svc.cluster.local"
	inFlight      = 3000
	inFlightWrite = 1500
)

// apiServerPart returns the API server with the configuration of a common
// cluster: RBAC, the default admission plugins (including Pod Security and
// admission policies), and priority and fairness.
func (p *plan) apiServerPart(port *reservation, etcdPort int) *part {
	f := p.folder
	args := []string{
		"--bind-address=" + p.apiHost(),
		"--advertise-address=" + p.apiHost(),
		"--secure-port=" + strconv.Itoa(port.port),
		"--etcd-servers=http://" + address(etcdPort),
		"--service-cluster-ip-range=" + p.serviceRange(),
		"--allow-privileged=true",

		"--tls-cert-file=" + f.cert(servingName),
		"--tls-private-key-file=" + f.key(servingName),
		"--client-ca-file=" + f.cert(caName),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",

		"--service-account-issuer=" + issuer,
		"--service-account-key-file=" + filepath.Join(f.pki(), serviceAccountName+".pub"),
		"--service-account-signing-key-file=" + f.key(serviceAccountName),

		"--requestheader-client-ca-file=" + f.cert(frontProxyCAName),
		"--requestheader-allowed-names=" + frontProxyName,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + f.cert(frontProxyName),
		"--proxy-client-key-file=" + f.key(frontProxyName),

		// Many times the defaults, so that tests do not delay each other.
		"--max-requests-inflight=" + strconv.Itoa(inFlight),
		"--max-mutating-requests-inflight=" + strconv.Itoa(inFlightWrite),
		// Do not delay a shutdown for open watches.
		"--shutdown-delay-duration=0s",
	}
	if p.Containers {
		args = append(args,
			"--kubelet-client-certificate="+f.cert(kubeletClientName),
			"--kubelet-client-key="+f.key(kubeletClientName),
			"--kubelet-certificate-authority="+f.cert(caName),
			"--kubelet-preferred-address-types=InternalIP",
		)
	} else {
		// A loopback address cannot be an endpoint of the Service "kubernetes".
		args = append(args, "--endpoint-reconciler-type=none")
	}
	if p.AuditLog != "" {
		args = append(args,
			"--audit-policy-file="+f.configFile(auditPolicyFile),
			"--audit-log-path="+p.AuditLog,
			// Large enough that the log is never rotated while a test reads it.
			"--audit-log-maxsize=4096",
		)
	}
	return &part{
		name:    apiServerName,
		program: kubeProgram(p.Bin, apiServerName),
		args:    args,
		health:  p.server + "/readyz",
		ports:   []*reservation{port},
	}
}

const auditPolicyFile = "audit-policy.yaml"

// auditPolicy logs each request once, when its response is complete. It omits
// bodies, because they may contain Secrets.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
`

// writeAudit writes the files that the API server needs for an audit log.
func (p *plan) writeAudit() error {
	if p.AuditLog == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(p.AuditLog), 0o755); err != nil {
		return err
	}
	return os.WriteFile(p.folder.configFile(auditPolicyFile), []byte(auditPolicy), 0o600)
}
