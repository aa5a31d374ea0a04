package chart

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"

	"github.com/chartwright/chartwright/internal/chart/analysis"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/helm/engine"
)

// Capabilities holds .Capabilities of charts: the version of the API server and the API
// versions that it serves. It reads them once, and again after Refresh. Helm would read
// them in every action. No caller holds the lock during a request.
type Capabilities struct {
	discovery discovery.DiscoveryInterface

	mu sync.Mutex
	// last is the last successful reading, or nil. It is current if it has this generation.
	last       *reading
	generation int
	// running is the reading in progress, or nil.
	running *reading
}

// reading is one reading of the capabilities. Its results are valid when done is closed.
type reading struct {
	generation int
	done       chan struct{}

	*engine.Capabilities
	// all is the digest of all API versions.
	all string
	// failed holds the errors of groups that could not be read.
	failed map[schema.GroupVersion]error
	err    error
}

// currentWithin is how long Digest and Serves wait for a reading.
const currentWithin = 10 * time.Second

// NewCapabilities returns Capabilities that are read from the API server on first use.
func NewCapabilities(d discovery.DiscoveryInterface) *Capabilities {
	return &Capabilities{discovery: d}
}

// Warm reads the capabilities ahead of their first use, because this takes long in
// clusters with hundreds of kinds. If it fails, the first use reads them again.
func (c *Capabilities) Warm() { _, _ = c.Read() }

// Refresh makes the next use read the capabilities again.
func (c *Capabilities) Refresh() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation++
}

// Digest returns a digest of the capabilities that a chart with these features reads. It
// is empty if the chart reads none.
func (c *Capabilities) Digest(f analysis.Features) (string, error) {
	if !f.Capabilities() {
		return "", nil
	}
	capabilities, err := c.current()
	if err != nil {
		return "", err
	}
	var parts []string
	if f.KubeVersion {
		parts = append(parts, capabilities.KubeVersion.Version)
	}
	if f.APIVersions {
		parts = append(parts, capabilities.all)
	}
	for _, api := range f.APIs {
		parts = append(parts, strconv.FormatBool(capabilities.APIVersions.Has(api)))
	}
	return values.DigestOf(parts...), nil
}

// Serves returns a function that reports whether the API server served a kind in any version
// when the capabilities were read. The function returns true for all kinds of groups that
// could not be read.
func (c *Capabilities) Serves() (func(schema.GroupVersionKind) bool, error) {
	capabilities, err := c.current()
	if err != nil {
		return nil, err
	}
	groups := sets.Set[string]{}
	for gv := range capabilities.failed {
		groups.Insert(gv.Group)
	}
	kinds := sets.Set[schema.GroupKind]{}
	for _, text := range capabilities.APIVersions {
		// An API version without a kind has no effect here.
		if end := strings.LastIndex(text, "/"); end >= 0 {
			kinds.Insert(schema.FromAPIVersionAndKind(text[:end], text[end+1:]).GroupKind())
		}
	}
	return func(gvk schema.GroupVersionKind) bool { return kinds.Has(gvk.GroupKind()) || groups.Has(gvk.Group) }, nil
}

// Read returns the capabilities, which the caller must not change. After Refresh, it returns the
// previous ones while they are read again: a chart that reads them is upgraded when its Digest
// has changed.
func (c *Capabilities) Read() (*engine.Capabilities, error) {
	last, running := c.start()
	if last == nil {
		<-running.done
		last = running
	}
	return last.Capabilities, last.err
}

// current returns the capabilities at the time of the last Refresh, or later.
func (c *Capabilities) current() (*reading, error) {
	limit := time.After(currentWithin)
	for {
		last, running := c.start()
		if running == nil {
			return last, nil
		}
		select {
		case <-running.done:
			if running.err != nil {
				return nil, running.err
			}
		case <-limit:
			return nil, fmt.Errorf("the API server did not return its API versions within %s", currentWithin)
		}
	}
}

// start returns the last successful reading, and the one in progress. It begins one if the last
// one is not current.
func (c *Capabilities) start() (last, running *reading) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running == nil && (c.last == nil || c.last.generation != c.generation) {
		c.running = &reading{generation: c.generation, done: make(chan struct{})}
		go c.finish(c.running)
	}
	return c.last, c.running
}

// finish reads the capabilities.
func (c *Capabilities) finish(r *reading) {
	defer close(r.done)
	r.err = r.read(c.discovery)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running = nil; r.err == nil {
		c.last = r
	}
}

// read reads the capabilities from the API server.
func (r *reading) read(from discovery.DiscoveryInterface) error {
	version, err := from.ServerVersion()
	if err != nil {
		return fmt.Errorf("read the server's version: %w", err)
	}
	versions, err := engine.GetVersionSet(from)
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return fmt.Errorf("read the server's API versions: %w", err)
	}
	r.failed, _ = discovery.GroupDiscoveryFailedErrorGroups(err)
	// Helm returns them in random order.
	slices.Sort(versions)
	r.Capabilities = &engine.Capabilities{
		APIVersions: versions,
		KubeVersion: engine.KubeVersion{Version: version.GitVersion, Major: version.Major, Minor: version.Minor},
		HelmVersion: engine.DefaultCapabilities.HelmVersion,
	}
	r.all = values.DigestOf(versions...)
	return nil
}
