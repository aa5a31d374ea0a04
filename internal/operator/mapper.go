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

// versionMapper is a RESTMapper that looks up a kind with its version by one small request
// for that version. At its first lookup, controller-runtime's lazy mapper reads and stores
// all kinds of the cluster, several hundred in many clusters. The embedded lazy mapper does
// all other lookups. A versionMapper also reports which kinds have a status subresource.
type versionMapper struct {
	meta.RESTMapper
	discovery discovery.DiscoveryInterface

	mu       sync.Mutex
	versions map[schema.GroupVersion]*apiVersion
}

// apiVersion is a version of a group.
type apiVersion struct {
	// reading serializes requests for the version. A slow version, for example of an
	// aggregated API, does not delay other versions.
	reading sync.Mutex
	// served is nil until the version was read, and if it is not served. The version is
	// read again if it lacks the kind in question.
	served atomic.Pointer[servedVersion]
}

// servedVersion holds the kinds that the API server serves in a version.
type servedVersion struct {
	meta.RESTMapper
	// statuses are the kinds with a status subresource.
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

// RESTMapping returns the resource of a kind. For the version "" it reads the versions that
// the API server serves now.
func (m *versionMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if len(versions) == 1 && versions[0] == "" {
		return m.anyVersion(kind)
	}
	if len(versions) != 1 {
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
	// Another caller may have read the version concurrently.
	if mapping, err = version.find(kind, gv); !meta.IsNoMatchError(err) {
		return mapping, err
	}
	served, err := m.read(gv)
	if err != nil {
		return nil, fmt.Errorf("read the kinds of %s: %w", gv, err)
	}
	version.served.Store(served)
	return version.find(kind, gv)
}

// anyVersion returns the resource of a kind in the first of the versions that serve the
// kind, the preferred version first. It uses nothing that was read before, so that it finds
// out that a kind or one of its versions is no longer served.
func (m *versionMapper) anyVersion(kind schema.GroupKind) (*meta.RESTMapping, error) {
	groups, err := m.discovery.ServerGroups()
	if err != nil {
		return nil, fmt.Errorf("read the API groups: %w", err)
	}
	for _, group := range groups.Groups {
		if group.Name != kind.Group {
			continue
		}
		for _, one := range group.Versions {
			gv := schema.GroupVersion{Group: group.Name, Version: one.Version}
			served, err := m.read(gv)
			if err != nil {
				return nil, fmt.Errorf("read the kinds of %s: %w", gv, err)
			}
			version := m.version(gv)
			version.served.Store(served)
			if mapping, err := version.find(kind, gv); !meta.IsNoMatchError(err) {
				return mapping, err
			}
		}
	}
	return nil, &meta.NoKindMatchError{GroupKind: kind}
}

func (m *versionMapper) version(gv schema.GroupVersion) *apiVersion {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.versions[gv] == nil {
		m.versions[gv] = &apiVersion{}
	}
	return m.versions[gv]
}

// find looks up a kind in the version as it was last read.
func (v *apiVersion) find(kind schema.GroupKind, gv schema.GroupVersion) (*meta.RESTMapping, error) {
	if served := v.served.Load(); served != nil {
		return served.RESTMapping(kind, gv.Version)
	}
	return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: []string{gv.Version}}
}

// read reads a version of a group. It returns nil if the API server does not serve it.
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

// noStatus reports whether a kind has no status subresource. It makes a request only if the
// version was not read yet.
func (m *versionMapper) noStatus(gvk schema.GroupVersionKind) bool {
	if _, err := m.RESTMapping(gvk.GroupKind(), gvk.Version); err != nil {
		// Assume that it has one.
		return false
	}
	served := m.version(gvk.GroupVersion()).served.Load()
	return served != nil && !served.statuses.Has(gvk.Kind)
}
