package operator

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/client"
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

	mu       sync.Mutex
	versions map[schema.GroupVersion]*apiVersion
}

// apiVersion is a version of a group.
type apiVersion struct {
	// reading lets one request at a time read the version. A version that is slow to
	// answer, such as that of an aggregated API, does not delay the others.
	reading sync.Mutex
	// served is nil until the version was read, and if it is not served. A version is
	// read again when it does not have the kind in question.
	served atomic.Pointer[servedVersion]
}

// servedVersion is what the API server has in a version.
type servedVersion struct {
	meta.RESTMapper
	// statuses are the kinds that are served with a status.
	statuses sets.Set[string]
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
	return &versionMapper{RESTMapper: all, discovery: client, versions: map[schema.GroupVersion]*apiVersion{}}, nil
}

// RESTMapping returns the resource of a kind.
func (m *versionMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if len(versions) != 1 || versions[0] == "" {
		return m.RESTMapper.RESTMapping(kind, versions...)
	}
	gv := kind.WithVersion(versions[0]).GroupVersion()
	version := m.version(gv)
	mapping, err := version.find(kind, gv)
	if !meta.IsNoMatchError(err) {
		return mapping, err
	}
	version.reading.Lock()
	defer version.reading.Unlock()
	// Another caller may have read the version meanwhile.
	if mapping, err = version.find(kind, gv); !meta.IsNoMatchError(err) {
		return mapping, err
	}
	served, err := m.read(gv)
	if err != nil {
		return nil, fmt.Errorf("read what the API server has in %s: %w", gv, err)
	}
	version.served.Store(served)
	return version.find(kind, gv)
}

func (m *versionMapper) version(gv schema.GroupVersion) *apiVersion {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.versions[gv] == nil {
		m.versions[gv] = &apiVersion{}
	}
	return m.versions[gv]
}

// find looks a kind up in what was read.
func (v *apiVersion) find(kind schema.GroupKind, gv schema.GroupVersion) (*meta.RESTMapping, error) {
	if served := v.served.Load(); served != nil {
		return served.RESTMapping(kind, gv.Version)
	}
	return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: []string{gv.Version}}
}

// read reads a version of a group, nil if the API server does not serve it.
func (m *versionMapper) read(gv schema.GroupVersion) (*servedVersion, error) {
	resources, err := m.discovery.ServerResourcesForGroupVersion(gv.String())
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	statuses := sets.Set[string]{}
	for _, resource := range resources.APIResources {
		if strings.HasSuffix(resource.Name, "/status") {
			statuses.Insert(resource.Kind)
		}
	}
	return &servedVersion{statuses: statuses, RESTMapper: restmapper.NewDiscoveryRESTMapper([]*restmapper.APIGroupResources{{
		Group: metav1.APIGroup{Name: gv.Group, Versions: []metav1.GroupVersionForDiscovery{{
			GroupVersion: gv.String(), Version: gv.Version,
		}}},
		VersionedResources: map[string][]metav1.APIResource{gv.Version: resources.APIResources},
	}})}, nil
}

// noStatus reports whether the API server serves no status of a kind. It makes a
// request only where the version of the group was not read yet.
func (m *versionMapper) noStatus(gvk schema.GroupVersionKind) bool {
	if _, err := m.RESTMapping(gvk.GroupKind(), gvk.Version); err != nil {
		// Unknown: assume that it has one.
		return false
	}
	served := m.version(gvk.GroupVersion()).served.Load()
	return served != nil && !served.statuses.Has(gvk.Kind)
}
