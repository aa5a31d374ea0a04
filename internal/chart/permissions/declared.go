package permissions

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/chart"
)

// objectVerbs are what is done with the objects of a release.
var objectVerbs = []string{"get", "list", "watch", "create", "patch", "delete"}

// declared asks for what the watches entry says is needed besides.
func (c *chartNeeds) declared() {
	const why = "watches.yaml"
	for _, rule := range c.kind.RBAC {
		verbs := rule.Verbs
		if len(verbs) == 0 {
			verbs = objectVerbs
		}
		for _, url := range rule.NonResourceURLs {
			c.addTo(target{url: url, everywhere: c.namespaced}, why, verbs)
		}
		for _, group := range rule.APIGroups {
			for _, name := range rule.Resources {
				t := target{GroupResource: schema.GroupResource{Group: group, Resource: name}, names: oneText(rule.ResourceNames)}
				t.everywhere = c.namespaced && c.clusterScoped(t.GroupResource)
				c.addTo(t, why, verbs)
			}
		}
	}
}

// clusterScoped tells of a resource that a watches entry names whether it has no
// namespace.
func (c *chartNeeds) clusterScoped(resource schema.GroupResource) bool {
	name, _, _ := strings.Cut(resource.Resource, "/")
	for _, known := range c.resources {
		if known.Group == resource.Group && known.Resource == name {
			return known.cluster
		}
	}
	return chart.ClusterScopedResource(resource)
}
