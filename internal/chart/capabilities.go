package chart

import (
	"fmt"
	"slices"
	"strconv"
	"sync"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"

	"github.com/chartwright/chartwright/internal/chart/analysis"
	"github.com/chartwright/chartwright/internal/chart/values"
)

// Capabilities is what charts see as .Capabilities: the server's version and
// the API versions it serves. It is read once and again after Refresh, for
// Helm would read it in every action.
type Capabilities struct {
	discovery discovery.DiscoveryInterface

	mu     sync.Mutex
	cached *chartutil.Capabilities
	// all is the digest of all API versions.
	all string
	// failed are the groups that could not be read.
	failed map[schema.GroupVersion]error
}

// NewCapabilities returns capabilities that are read from the API server when they
// are needed.
func NewCapabilities(d discovery.DiscoveryInterface) *Capabilities {
	return &Capabilities{discovery: d}
}

// Warm reads them, so that who needs them first need not wait: where the cluster
// has hundreds of kinds, that takes a while. What fails is tried again at need.
func (c *Capabilities) Warm() { _, _, _ = c.Read() }

// Refresh makes the next use read anew.
func (c *Capabilities) Refresh() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cached = nil
}

// Digest covers what a chart with these features sees; it is empty for one
// that looks at none of it.
func (c *Capabilities) Digest(f analysis.Features) (string, error) {
	if !f.Capabilities() {
		return "", nil
	}
	capabilities, all, err := c.Read()
	if err != nil {
		return "", err
	}
	var parts []string
	if f.KubeVersion {
		parts = append(parts, capabilities.KubeVersion.Version)
	}
	if f.APIVersions {
		parts = append(parts, all)
	}
	for _, api := range f.APIs {
		parts = append(parts, strconv.FormatBool(capabilities.APIVersions.Has(api)))
	}
	return values.DigestOf(parts...), nil
}

// Serves returns a function that reports whether the API server may serve a kind,
// as of when the capabilities were read. It may serve any kind of a group that
// could not be read.
func (c *Capabilities) Serves() (func(schema.GroupVersionKind) bool, error) {
	capabilities, _, err := c.Read()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	failed := c.failed
	c.mu.Unlock()
	kinds := sets.New(capabilities.APIVersions...)
	return func(gvk schema.GroupVersionKind) bool {
		return kinds.Has(gvk.GroupVersion().String()+"/"+gvk.Kind) || failed[gvk.GroupVersion()] != nil
	}, nil
}

// Read returns the capabilities, which nobody changes, and the digest of all
// API versions.
func (c *Capabilities) Read() (*chartutil.Capabilities, string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cached != nil {
		return c.cached, c.all, nil
	}
	version, err := c.discovery.ServerVersion()
	if err != nil {
		return nil, "", fmt.Errorf("read the server's version: %w", err)
	}
	versions, err := action.GetVersionSet(c.discovery)
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, "", fmt.Errorf("read the server's API versions: %w", err)
	}
	c.failed, _ = discovery.GroupDiscoveryFailedErrorGroups(err)
	// Helm collects them from a map, in any order.
	slices.Sort(versions)
	c.cached = &chartutil.Capabilities{
		APIVersions: versions,
		KubeVersion: chartutil.KubeVersion{Version: version.GitVersion, Major: version.Major, Minor: version.Minor},
		HelmVersion: chartutil.DefaultCapabilities.HelmVersion,
	}
	c.all = values.DigestOf(versions...)
	return c.cached, c.all, nil
}
