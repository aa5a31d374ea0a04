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

// Capabilities holds .Capabilities of charts: the version of the API server and the API
// versions that it serves. It reads them once, and again after Refresh. Helm would read
// them in every action.
type Capabilities struct {
	discovery discovery.DiscoveryInterface

	mu     sync.Mutex
	cached *chartutil.Capabilities
	// all is the digest of all API versions.
	all string
	// failed holds the errors of groups that could not be read.
	failed map[schema.GroupVersion]error
}

// NewCapabilities returns Capabilities that are read from the API server on first use.
func NewCapabilities(d discovery.DiscoveryInterface) *Capabilities {
	return &Capabilities{discovery: d}
}

// Warm reads the capabilities ahead of their first use, because this takes long in
// clusters with hundreds of kinds. If it fails, the first use reads them again.
func (c *Capabilities) Warm() { _, _, _ = c.Read() }

// Refresh drops the cached capabilities, so that the next use reads them again.
func (c *Capabilities) Refresh() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cached = nil
}

// Digest returns a digest of the capabilities that a chart with these features reads. It
// is empty if the chart reads none.
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

// Serves returns a function that reports whether the API server served a kind when the
// capabilities were read. The function returns true for all kinds of groups that could
// not be read.
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

// Read returns the capabilities, which the caller must not change, and the digest of all
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
	// Helm returns them in random order.
	slices.Sort(versions)
	c.cached = &chartutil.Capabilities{
		APIVersions: versions,
		KubeVersion: chartutil.KubeVersion{Version: version.GitVersion, Major: version.Major, Minor: version.Minor},
		HelmVersion: chartutil.DefaultCapabilities.HelmVersion,
	}
	c.all = values.DigestOf(versions...)
	return c.cached, c.all, nil
}
