package helm

import (
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ClusterScopedResource tells of the resources of Kubernetes, and of their
// subresources, which have no namespace. Any other passes for one that has.
func ClusterScopedResource(resource schema.GroupResource) bool {
	resource.Resource, _, _ = strings.Cut(resource.Resource, "/")
	return clusterScopedResources()[resource]
}

var clusterScopedResources = sync.OnceValue(func() map[schema.GroupResource]bool {
	known := map[schema.GroupResource]bool{}
	for _, resource := range virtual {
		known[resource] = true
	}
	for group, kinds := range clusterScoped {
		for _, kind := range kinds {
			plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind})
			known[plural.GroupResource()] = true
		}
	}
	return known
})

// virtual are resources without a namespace that are no kinds of Kubernetes' own:
// what the API server is asked, and what only its authorizers know.
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
