package main

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// lifetime is the requested validity of the operator's token. The cluster may
// grant less.
const lifetime = 24 * time.Hour

// writeAccountKubeconfig writes a kubeconfig for the same cluster with a token
// of the operator's ServiceAccount, like that of its pods. It contains none of
// the user's own credentials.
func (r *rig) writeAccountKubeconfig(ctx context.Context, file string) error {
	seconds := int64(lifetime.Seconds())
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	serviceAccount := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: account.Name}}
	if err := r.client.SubResource("token").Create(ctx, serviceAccount, token); err != nil {
		return fmt.Errorf("get a token for ServiceAccount %s: %w", account, err)
	}
	config, err := r.config.RawConfig()
	if err != nil {
		return err
	}
	if err := clientcmdapi.MinifyConfig(&config); err != nil {
		return err
	}
	if err := clientcmdapi.FlattenConfig(&config); err != nil {
		return err
	}
	user := account.String()
	config.AuthInfos = map[string]*clientcmdapi.AuthInfo{user: {Token: token.Status.Token}}
	current := config.Contexts[config.CurrentContext]
	current.AuthInfo, current.Namespace = user, account.Namespace
	return clientcmd.WriteToFile(config, file)
}
