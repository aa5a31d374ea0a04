package helm

import (
	"fmt"
	"net/http"

	"k8s.io/client-go/dynamic"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/chartwright/chartwright/internal/apply"
)

// identity is in whose name objects are read and written. Records, caches and
// custom resources are always the operator's own business.
type identity struct {
	config  *rest.Config
	http    *http.Client
	objects apply.Client
}

// as returns the identity of a service account, or the operator's own where
// none is named. Identities are kept: there are as many as accounts in use.
func (c *Client) as(namespace, serviceAccount string) (identity, error) {
	if serviceAccount == "" {
		return c.own, nil
	}
	c.identitiesMu.Lock()
	defer c.identitiesMu.Unlock()
	user := fmt.Sprintf("system:serviceaccount:%s:%s", namespace, serviceAccount)
	if known, ok := c.identities[user]; ok {
		return known, nil
	}
	config := rest.CopyConfig(c.own.config)
	// The API server adds an account's groups itself. To name them takes the
	// right to impersonate groups, too.
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return identity{}, fmt.Errorf("impersonate %s: %w", user, err)
	}
	made, err := newIdentity(config, httpClient)
	if err != nil {
		return identity{}, fmt.Errorf("impersonate %s: %w", user, err)
	}
	c.identities[user] = made
	return made, nil
}

// core returns a client for what the others cannot do: read the logs of pods.
func (i identity) core() (typedcorev1.CoreV1Interface, error) {
	return typedcorev1.NewForConfigAndClient(i.config, i.http)
}

func newIdentity(config *rest.Config, httpClient *http.Client) (identity, error) {
	metadataClient, err := metadata.NewForConfigAndClient(metadata.ConfigFor(config), httpClient)
	if err != nil {
		return identity{}, err
	}
	dynamicClient, err := dynamic.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return identity{}, err
	}
	objects := apply.Client{Metadata: metadataClient, Dynamic: dynamicClient}
	return identity{config: config, http: httpClient, objects: objects}, nil
}
