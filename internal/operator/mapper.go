package operator

import (
	"fmt"
	"net/http"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// versionMapper replaces controller-runtime's lazy mapper for lookups of a kind with
// its version. At the first lookup of any kind that mapper reads all kinds of the
// cluster by aggregated discovery, some hundred in many clusters, and keeps them.
// This one reads only the version in question, by one small request. The embedded
// mapper answers all other lookups. A versionMapper also knows which kinds have a
// status subresource, which a RESTMapper does not report.
type versionMapper struct {
	meta.RESTMapper
	discovery discovery.ServerResourcesInterface

	mu sync.RWMutex
	// known are the versions that were read. A version is read again when it does
	// not have the kind in question.
	known map[schema.GroupVersion]meta.RESTMapper
	// reading lets one request at a time read a version. A version that is slow to
	// answer, such as that of an aggregated API, does not delay the others.
	reading map[schema.GroupVersion]*sync.Mutex
	// statuses are the kinds of these versions that are served with a status.
	statuses map[schema.GroupVersion]map[string]bool
}

func newMapper(config *rest.Config, httpClient *http.Client) (meta.RESTMapper, error) {
	all, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	if err != nil {
		return nil, err
	}
	client, err := discovery.NewDiscoveryClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, err
	}
	return &versionMapper{RESTMapper: all, discovery: client,
		known: map[schema.GroupVersion]meta.RESTMapper{}, reading: map[schema.GroupVersion]*sync.Mutex{}, statuses: map[schema.GroupVersion]map[string]bool{},
	}, nil
}

// RESTMapping returns the resource of a kind.
func (m *versionMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if len(versions) != 1 || versions[0] == "" {
		return m.RESTMapper.RESTMapping(kind, versions...)
	}
	version := schema.GroupVersion{Group: kind.Group, Version: versions[0]}
	mapping, err := m.find(kind, version)
	if !meta.IsNoMatchError(err) {
		return mapping, err
	}
	reading := m.readingOf(version)
	reading.Lock()
	defer reading.Unlock()
	// Another caller may have read the version meanwhile.
	if mapping, err = m.find(kind, version); !meta.IsNoMatchError(err) {
		return mapping, err
	}
	if err := m.read(version); err != nil {
		return nil, fmt.Errorf("read what the API server has in %s: %w", version, err)
	}
	return m.find(kind, version)
}

func (m *versionMapper) readingOf(version schema.GroupVersion) *sync.Mutex {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reading[version] == nil {
		m.reading[version] = &sync.Mutex{}
	}
	return m.reading[version]
}

// find looks a kind up in what was read.
func (m *versionMapper) find(kind schema.GroupKind, version schema.GroupVersion) (*meta.RESTMapping, error) {
	m.mu.RLock()
	known, ok := m.known[version]
	m.mu.RUnlock()
	if !ok {
		return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: []string{version.Version}}
	}
	return known.RESTMapping(kind, version.Version)
}

// read reads a version of a group. A version that the API server does not serve
// becomes unknown.
func (m *versionMapper) read(version schema.GroupVersion) error {
	resources, err := m.discovery.ServerResourcesForGroupVersion(version.String())
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		delete(m.known, version)
		return nil
	}
	statuses := map[string]bool{}
	for _, resource := range resources.APIResources {
		if strings.HasSuffix(resource.Name, "/status") {
			statuses[resource.Kind] = true
		}
	}
	m.statuses[version] = statuses
	m.known[version] = restmapper.NewDiscoveryRESTMapper([]*restmapper.APIGroupResources{{
		Group: metav1.APIGroup{Name: version.Group, Versions: []metav1.GroupVersionForDiscovery{{
			GroupVersion: version.String(), Version: version.Version,
		}}},
		VersionedResources: map[string][]metav1.APIResource{version.Version: resources.APIResources},
	}})
	return nil
}

// noStatus reports whether the API server serves no status of a kind. It makes a
// request only where the version of the group was not read yet.
func (m *versionMapper) noStatus(gvk schema.GroupVersionKind) bool {
	if _, err := m.RESTMapping(gvk.GroupKind(), gvk.Version); err != nil {
		// Unknown: assume that it has one.
		return false
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	statuses, read := m.statuses[gvk.GroupVersion()]
	return read && !statuses[gvk.Kind]
}
