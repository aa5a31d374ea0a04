package helm

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/chartwright/chartwright/internal/values"
)

// Capabilities is what charts see as .Capabilities: the server's version and
// the API versions it serves. It is read once and again after Refresh, for
// Helm would read it in every action.
type Capabilities struct {
	discovery discovery.DiscoveryInterface

	mu     sync.Mutex
	cached *chartutil.Capabilities
	digest map[Features]string
}

func newCapabilities(d discovery.DiscoveryInterface) *Capabilities {
	return &Capabilities{discovery: d}
}

// Refresh makes the next use read anew.
func (c *Capabilities) Refresh() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cached, c.digest = nil, nil
}

// Digest covers what a chart with these features sees; it is empty for one
// that looks at none of it.
func (c *Capabilities) Digest(f Features) (string, error) {
	key := Features{KubeVersion: f.KubeVersion, APIVersions: f.APIVersions}
	if key == (Features{}) {
		return "", nil
	}
	capabilities, err := c.get()
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if digest, ok := c.digest[key]; ok {
		return digest, nil
	}
	var parts []string
	if f.KubeVersion {
		parts = append(parts, capabilities.KubeVersion.Version)
	}
	if f.APIVersions {
		parts = append(parts, capabilities.APIVersions...)
	}
	if c.digest == nil {
		c.digest = map[Features]string{}
	}
	c.digest[key] = values.DigestOf(parts...)
	return c.digest[key], nil
}

// get returns the capabilities. Nobody changes them.
func (c *Capabilities) get() (*chartutil.Capabilities, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cached != nil {
		return c.cached, nil
	}
	version, err := c.discovery.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("read the server's version: %w", err)
	}
	versions, err := action.GetVersionSet(c.discovery)
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, fmt.Errorf("read the server's API versions: %w", err)
	}
	// Helm collects them from a map, in any order.
	slices.Sort(versions)
	c.cached = &chartutil.Capabilities{
		APIVersions: versions,
		KubeVersion: chartutil.KubeVersion{Version: version.GitVersion, Major: version.Major, Minor: version.Minor},
		HelmVersion: chartutil.DefaultCapabilities.HelmVersion,
	}
	return c.cached, nil
}

// lookupGetter gives templates' lookup a configuration whose requests end with
// the action's context.
type lookupGetter struct {
	ctx    context.Context
	config *rest.Config
}

var _ action.RESTClientGetter = lookupGetter{}

// ToRESTConfig returns a copy, for callers change it.
func (g lookupGetter) ToRESTConfig() (*rest.Config, error) {
	config := rest.CopyConfig(g.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return boundTransport{ctx: g.ctx, next: next}
	})
	return config, nil
}

// ToDiscoveryClient is not called, since the capabilities are preset.
func (g lookupGetter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return nil, errNotUsed
}

// ToRESTMapper is not called, since objects are built by our own client.
func (g lookupGetter) ToRESTMapper() (meta.RESTMapper, error) { return nil, errNotUsed }

var errNotUsed = fmt.Errorf("internal error: not used by any action")
