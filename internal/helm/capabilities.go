package helm

import (
	"fmt"
	"slices"
	"sync"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/client-go/discovery"

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
