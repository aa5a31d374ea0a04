package local

import (
	"net"
	"path/filepath"

	"github.com/chartwright/chartwright/test/cluster/internal/pki"
)

// Names of files in the folder with the certificates.
const (
	caName             = "ca"
	servingName        = "serving"
	serviceAccountName = "service-account"
	frontProxyCAName   = "front-proxy-ca"
	frontProxyName     = "front-proxy"
)

// adminUser is the user of the cluster's kubeconfig.
const adminUser = "kubernetes-admin"

// Kubernetes authorizes all requests of this group.
const mastersGroup = "system:masters"

// issueCredentials creates all keys, certificates and kubeconfigs of the
// cluster.
func (p *plan) issueCredentials() error {
	authority, err := pki.NewAuthority("kubernetes")
	if err != nil {
		return err
	}
	if err := authority.Write(filepath.Join(p.folder.pki(), caName)); err != nil {
		return err
	}
	for _, step := range []func(*pki.Authority) error{p.issueServing, p.issueFrontProxy, p.issueClients} {
		if err := step(authority); err != nil {
			return err
		}
	}
	if p.Containers {
		if err := p.issueNode(authority); err != nil {
			return err
		}
	}
	signer, err := pki.NewKey()
	if err != nil {
		return err
	}
	return pki.WriteSigner(filepath.Join(p.folder.pki(), serviceAccountName), signer)
}

// issueServing creates one certificate for all servers of the cluster. It
// includes the names of the API server that pods use.
func (p *plan) issueServing(authority *pki.Authority) error {
	pair, err := authority.Server("kube-apiserver",
		[]string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
		[]net.IP{net.ParseIP(loopback), net.ParseIP(p.apiHost()), net.ParseIP(p.firstService())})
	if err != nil {
		return err
	}
	return pair.Write(filepath.Join(p.folder.pki(), servingName))
}

// issueFrontProxy creates the client certificate that the API server uses for
// aggregated API servers. It has a separate authority, as Kubernetes requires,
// because a certificate of this authority can impersonate any user.
func (p *plan) issueFrontProxy(*pki.Authority) error {
	authority, err := pki.NewAuthority("kubernetes-front-proxy")
	if err != nil {
		return err
	}
	if err := authority.Write(filepath.Join(p.folder.pki(), frontProxyCAName)); err != nil {
		return err
	}
	pair, err := authority.Client(frontProxyName)
	if err != nil {
		return err
	}
	return pair.Write(filepath.Join(p.folder.pki(), frontProxyName))
}

// clientLogin is a kubeconfig and its user.
type clientLogin struct {
	file, user string
	groups     []string
}

// issueClients creates kubeconfigs for the admin and for each component that
// uses the API server, with the user names that the API server expects.
func (p *plan) issueClients(authority *pki.Authority) error {
	clients := []clientLogin{
		{p.folder.kubeconfig(), adminUser, []string{mastersGroup}},
		{p.folder.configFile(controllerManagerName + ".kubeconfig"), "system:kube-controller-manager", nil},
		{p.folder.configFile(schedulerName + ".kubeconfig"), "system:kube-scheduler", nil},
	}
	if p.Containers {
		clients = append(clients, p.nodeClients()...)
	} else {
		clients = append(clients, clientLogin{p.folder.configFile(kwokName + ".kubeconfig"), "system:kwok", []string{mastersGroup}})
	}
	for _, client := range clients {
		pair, err := authority.Client(client.user, client.groups...)
		if err != nil {
			return err
		}
		login, err := loginByCertificate(pair)
		if err != nil {
			return err
		}
		err = writeKubeconfig(client.file, kubeconfigFor(p.server, authority.CertPEM(), client.user, "default", login))
		if err != nil {
			return err
		}
	}
	return nil
}
