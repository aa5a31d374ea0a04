package helm

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// newMapper makes the client read the kinds from the API server again, as a new process does.
func (w *faultyWorld) newMapper() {
	w.Helper()
	all, err := apiutil.NewDynamicRESTMapper(apiServer.config, w.helm.config.HTTP)
	w.must(err)
	client, err := discovery.NewDiscoveryClientForConfigAndClient(apiServer.config, w.helm.config.HTTP)
	w.must(err)
	w.helm.config.Mapper = &versionedMapper{RESTMapper: all, client: client, served: w.waitServed, known: map[schema.GroupVersion]meta.RESTMapper{}}
}

// versionedMapper reads one version at a time, as the operator's mapper does.
type versionedMapper struct {
	meta.RESTMapper
	client discovery.DiscoveryInterface
	// served waits until the API server serves a version whose CRD is established. It takes some
	// time, which is not what the table tests.
	served func(schema.GroupVersion) error
	mu     sync.Mutex
	known  map[schema.GroupVersion]meta.RESTMapper
}

func (m *versionedMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if len(versions) != 1 || versions[0] == "" {
		return m.RESTMapper.RESTMapping(kind, versions...)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	gv := kind.WithVersion(versions[0]).GroupVersion()
	if err := m.served(gv); err != nil {
		return nil, err
	}
	if known := m.known[gv]; known != nil {
		if mapping, err := known.RESTMapping(kind, versions...); err == nil {
			return mapping, nil
		}
	}
	served, err := m.client.ServerResourcesForGroupVersion(gv.String())
	switch {
	case apierrors.IsNotFound(err):
		served = &metav1.APIResourceList{}
	case err != nil:
		return nil, fmt.Errorf("read the kinds of %s: %w", gv, err)
	}
	m.known[gv] = restmapper.NewDiscoveryRESTMapper([]*restmapper.APIGroupResources{{
		Group:              metav1.APIGroup{Name: gv.Group, Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: gv.String(), Version: gv.Version}}},
		VersionedResources: map[string][]metav1.APIResource{gv.Version: served.APIResources},
	}})
	return m.known[gv].RESTMapping(kind, versions...)
}

// waitServed waits until the API server serves the version of an established CRD.
func (w *faultyWorld) waitServed(gv schema.GroupVersion) error {
	if !strings.HasPrefix(gv.Group, w.namespace) {
		return nil
	}
	plain, err := metadata.NewForConfig(apiServer.config)
	if err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(w.Context(), 10*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, unlisted := plain.Resource(gv.WithResource("gauges")).List(ctx, metav1.ListOptions{})
		if _, err := w.plain.Discovery().ServerResourcesForGroupVersion(gv.String()); err == nil && unlisted == nil {
			return true, nil
		}
		_, err := plain.Resource(crdResource).Get(ctx, "gauges."+gv.Group, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
}
