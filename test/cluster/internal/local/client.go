package local

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// client returns an admin client of the API server.
func (f folder) client() (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", f.kubeconfig())
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 1000, 1000
	return kubernetes.NewForConfig(config)
}

// healthClient returns a client for health endpoints. It trusts only this
// cluster's certificates, so that another process on the same port is detected.
func (f folder) healthClient() (*http.Client, error) {
	ca, err := os.ReadFile(f.cert(caName))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("%s is not a certificate", f.cert(caName))
	}
	return &http.Client{
		Timeout: 5 * time.Second,
		Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			DisableKeepAlives: true,
		},
	}, nil
}
