package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// versionMapper is a RESTMapper that looks up a kind with its version by one small request
// for that version, and a kind without a version by one for its group and one for each
// version. At its first lookup, controller-runtime's lazy mapper reads and stores all kinds
// of the cluster, several hundred in many clusters, and never finds out that a version is no
// longer served. The embedded lazy mapper does all other lookups. A versionMapper also
// reports which kinds have a status subresource.
type versionMapper struct {
	meta.RESTMapper
	discovery discovery.DiscoveryInterface

	mu       sync.Mutex
	versions map[schema.GroupVersion]*apiVersion
	groups   map[string]*apiGroup
}

// apiGroup is a group as it was last looked up.
type apiGroup struct {
	// looking serializes lookups of the group.
	looking sync.Mutex
	// lookedUp is the time of the last complete lookup.
	lookedUp time.Time
	// versions are the served versions, the preferred one first.
	versions []schema.GroupVersion
}

// lookupPeriod is the shortest time between two lookups of a group. If a version is no
// longer served, each object of each release may cause one.
const lookupPeriod = time.Second

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
	return &versionMapper{RESTMapper: all, discovery: client, versions: map[schema.GroupVersion]*apiVersion{}, groups: map[string]*apiGroup{}}, nil
}

// RESTMapping returns the resource of a kind. Without a version it returns a version that
// was served when it was last read. For the version "" it looks up the versions that the API
// server serves now.
func (m *versionMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	switch {
	case len(versions) > 1:
		return m.RESTMapper.RESTMapping(kind, versions...)
	case len(versions) == 0 || versions[0] == "":
		return m.anyVersion(kind, len(versions) > 0)
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
	if err := version.read(m.discovery, gv); err != nil {
		return nil, err
	}
	return version.find(kind, gv)
}

// anyVersion returns the resource of a kind in the first of the versions that serve the
// kind, the preferred version first. The error is a NoMatch error only if the API server has
// listed all kinds of the group.
func (m *versionMapper) anyVersion(kind schema.GroupKind, again bool) (*meta.RESTMapping, error) {
	group := m.group(kind.Group)
	group.looking.Lock()
	defer group.looking.Unlock()
	mapping, err := m.first(group.versions, kind)
	if err == nil && !again || time.Since(group.lookedUp) < lookupPeriod {
		return mapping, err
	}
	unread := m.lookUp(group, kind.Group)
	if mapping, err = m.first(group.versions, kind); err != nil && unread != nil {
		return nil, unread
	}
	return mapping, err
}

func (m *versionMapper) first(versions []schema.GroupVersion, kind schema.GroupKind) (*meta.RESTMapping, error) {
	for _, gv := range versions {
		if mapping, err := m.version(gv).find(kind, gv); err == nil {
			return mapping, nil
		}
	}
	return nil, &meta.NoKindMatchError{GroupKind: kind}
}

// lookUp reads the versions of a group and their kinds. A version that cannot be read, for
// example of an aggregated API, stays as it was read last. The caller holds the lock of the
// group.
func (m *versionMapper) lookUp(group *apiGroup, name string) error {
	// The API server serves no other version of the core group.
	served := metav1.APIGroup{Versions: []metav1.GroupVersionForDiscovery{{Version: "v1"}}}
	if name != "" {
		served.Versions = nil
		err := m.discovery.RESTClient().Get().AbsPath("/apis", name).Do(context.Background()).Into(&served)
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("read the versions of %s: %w", name, err)
		}
	}
	group.versions = nil
	for _, one := range served.Versions {
		group.versions = append(group.versions, schema.GroupVersion{Group: name, Version: one.Version})
	}
	m.forgetOthers(name, group.versions)
	var unread []error
	for _, gv := range group.versions {
		version := m.version(gv)
		version.reading.Lock()
		unread = append(unread, version.read(m.discovery, gv))
		version.reading.Unlock()
	}
	if err := errors.Join(unread...); err != nil {
		return err
	}
	group.lookedUp = time.Now()
	return nil
}

// forgetOthers forgets the kinds in the versions of a group that are no longer served.
func (m *versionMapper) forgetOthers(group string, served []schema.GroupVersion) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for gv, version := range m.versions {
		if gv.Group == group && !slices.Contains(served, gv) {
			version.served.Store(nil)
		}
	}
}

func (m *versionMapper) group(name string) *apiGroup {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.groups[name] == nil {
		m.groups[name] = &apiGroup{}
	}
	return m.groups[name]
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

// read reads the kinds of a version. The caller holds the lock.
func (v *apiVersion) read(from discovery.DiscoveryInterface, gv schema.GroupVersion) error {
	resources, err := from.ServerResourcesForGroupVersion(gv.String())
	if apierrors.IsNotFound(err) {
		v.served.Store(nil)
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the kinds of %s: %w", gv, err)
	}
	statuses := sets.Set[string]{}
	for _, resource := range resources.APIResources {
		if strings.HasSuffix(resource.Name, "/status") {
			statuses.Insert(resource.Kind)
		}
	}
	v.served.Store(&servedVersion{statuses: statuses, RESTMapper: restmapper.NewDiscoveryRESTMapper([]*restmapper.APIGroupResources{{
		Group: metav1.APIGroup{Name: gv.Group, Versions: []metav1.GroupVersionForDiscovery{{
			GroupVersion: gv.String(), Version: gv.Version,
		}}},
		VersionedResources: map[string][]metav1.APIResource{gv.Version: resources.APIResources},
	}})})
	return nil
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
