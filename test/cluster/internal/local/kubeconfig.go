package local

import (
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/chartwright/chartwright/test/cluster/internal/pki"
)

// clusterName is the cluster's name in kubeconfigs.
const clusterName = "chartwright"

// kubeconfigFor returns a kubeconfig that does not refer to other files, so
// that it can be copied.
func kubeconfigFor(server string, ca []byte, user, namespace string, login *clientcmdapi.AuthInfo) *clientcmdapi.Config {
	return &clientcmdapi.Config{
		CurrentContext: clusterName,
		Clusters: map[string]*clientcmdapi.Cluster{
			clusterName: {Server: server, CertificateAuthorityData: ca},
		},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{user: login},
		Contexts: map[string]*clientcmdapi.Context{
			clusterName: {Cluster: clusterName, AuthInfo: user, Namespace: namespace},
		},
	}
}

// loginByCertificate returns the credentials of a client certificate.
func loginByCertificate(pair pki.Pair) (*clientcmdapi.AuthInfo, error) {
	key, err := pair.KeyPEM()
	if err != nil {
		return nil, err
	}
	return &clientcmdapi.AuthInfo{ClientCertificateData: pair.CertPEM(), ClientKeyData: key}, nil
}

// writeKubeconfig writes a kubeconfig that only its owner can read.
func writeKubeconfig(file string, config *clientcmdapi.Config) error {
	raw, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, raw, 0o600)
}
