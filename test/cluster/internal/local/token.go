package local

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Kubeconfig returns the admin's kubeconfig.
func Kubeconfig(dir string) ([]byte, error) {
	f := folder(dir)
	if _, err := f.readState(); err != nil {
		return nil, err
	}
	return os.ReadFile(f.kubeconfig())
}

// ServiceAccountKubeconfig returns a kubeconfig with a token of a
// ServiceAccount, given as NAMESPACE/NAME, like that of its pods.
func ServiceAccountKubeconfig(ctx context.Context, dir, account string, lifetime time.Duration) ([]byte, error) {
	namespace, name, found := strings.Cut(account, "/")
	if !found || namespace == "" || name == "" {
		return nil, fmt.Errorf("ServiceAccount: got %q, want NAMESPACE/NAME", account)
	}
	f := folder(dir)
	s, err := f.readState()
	if err != nil {
		return nil, err
	}
	client, err := f.client()
	if err != nil {
		return nil, err
	}
	seconds := int64(lifetime.Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	token, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("ServiceAccount not found: create it with `kubectl create serviceaccount --namespace %s %s`: %w", namespace, name, err)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot get a token for ServiceAccount %s: %w", account, err)
	}
	ca, err := os.ReadFile(f.cert(caName))
	if err != nil {
		return nil, err
	}
	login := &clientcmdapi.AuthInfo{Token: token.Status.Token}
	return clientcmd.Write(*kubeconfigFor(s.Server, ca, account, namespace, login))
}
