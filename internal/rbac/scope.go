package rbac

import (
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/chartwright/chartwright/internal/helm"
)

// virtual are resources without a namespace that are no kinds: what the API
// server is asked, and what only its authorizers know.
var virtual = []schema.GroupResource{
	{Group: "authentication.k8s.io", Resource: "tokenreviews"},
	{Group: "authentication.k8s.io", Resource: "selfsubjectreviews"},
	{Group: "authentication.k8s.io", Resource: "uids"},
	{Group: "authentication.k8s.io", Resource: "userextras"},
	{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"},
	{Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"},
	{Group: "authorization.k8s.io", Resource: "selfsubjectrulesreviews"},
	{Group: "certificates.k8s.io", Resource: "signers"},
	{Group: "metrics.k8s.io", Resource: "nodes"},
	{Resource: "groups"},
	{Resource: "users"},
}

// ClusterScoped tells of the resources of Kubernetes, and of their subresources,
// which have no namespace. Any other passes for one that has.
func ClusterScoped(resource schema.GroupResource) bool {
	resource.Resource, _, _ = strings.Cut(resource.Resource, "/")
	return clusterResources()[resource]
}

var clusterResources = sync.OnceValue(func() map[schema.GroupResource]bool {
	known := map[schema.GroupResource]bool{}
	for _, resource := range virtual {
		known[resource] = true
	}
	add := func(kind schema.GroupKind) {
		if helm.ClusterScoped(kind) {
			plural, _ := meta.UnsafeGuessKindToResource(kind.WithVersion("v1"))
			known[plural.GroupResource()] = true
		}
	}
	for _, kind := range unlisted {
		add(kind)
	}
	for gvk := range clientgoscheme.Scheme.AllKnownTypes() {
		add(gvk.GroupKind())
	}
	return known
})

// clusterScoped tells of a resource that a watches entry names whether it has no
// namespace.
func (c *chartNeeds) clusterScoped(resource schema.GroupResource) bool {
	name, _, _ := strings.Cut(resource.Resource, "/")
	for _, known := range c.resources {
		if known.Group == resource.Group && known.Resource == name {
			return known.cluster
		}
	}
	return ClusterScoped(resource)
}
