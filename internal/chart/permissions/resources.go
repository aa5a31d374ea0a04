package permissions

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/crd"
	"github.com/chartwright/chartwright/internal/watches"
)

// resource is the API resource of a kind.
type resource struct {
	schema.GroupResource
	// cluster: the objects have no namespace.
	cluster bool
	// guessed: nothing here knows the kind, and the name follows the custom.
	guessed bool
}

// resources are those of kinds that are no part of Kubernetes, where they are
// known.
type resources map[schema.GroupKind]resource

// resourcesOf returns the resources of the operator's own kinds.
func resourcesOf(kinds []catalog.Kind) (resources, error) {
	known := resources{}
	for _, kind := range kinds {
		definition, _, err := crd.Generate(kind)
		if err != nil {
			return nil, err
		}
		known[kind.GVK().GroupKind()] = resource{
			GroupResource: schema.GroupResource{Group: kind.Group, Resource: definition.Spec.Names.Plural},
			cluster:       kind.Scope == watches.ScopeCluster,
		}
	}
	return known, nil
}

// define adds the resource of a definition in a chart.
func (r resources) define(definition *unstructured.Unstructured) error {
	kind, plural, cluster := chart.DefinedKind(definition)
	if kind.Group == "" || kind.Kind == "" || plural == "" {
		return fmt.Errorf("CustomResourceDefinition %s: expected spec.group, spec.names.kind and spec.names.plural", definition.GetName())
	}
	r[kind] = resource{GroupResource: schema.GroupResource{Group: kind.Group, Resource: plural}, cluster: cluster}
	return nil
}

// of returns the resource of a kind.
func (r resources) of(kind schema.GroupKind) resource {
	if known, ok := r[kind]; ok {
		return known
	}
	return resource{
		GroupResource: schema.GroupResource{Group: kind.Group, Resource: guess(kind.Kind)},
		cluster:       chart.ClusterScoped(kind),
		// It is none of Kubernetes.
		guessed: !slices.Contains(groupsOf(kind.Kind), kind.Group),
	}
}

// guess returns the usual name of a kind's resource. It is right for all kinds of
// Kubernetes.
func guess(kind string) string {
	if lower := strings.ToLower(kind); strings.HasSuffix(lower, "endpoints") {
		return lower
	}
	return crd.DefaultPlural(kind)
}

// groupsOf returns the groups of Kubernetes that have a kind of the name. Of
// extensions, which is gone, it returns nothing.
func groupsOf(kind string) []string {
	for _, gk := range unlisted {
		if gk.Kind == kind {
			return []string{gk.Group}
		}
	}
	var groups []string
	for gvk := range clientgoscheme.Scheme.AllKnownTypes() {
		if gvk.Kind == kind && gvk.Group != "extensions" && !slices.Contains(groups, gvk.Group) {
			groups = append(groups, gvk.Group)
		}
	}
	slices.Sort(groups)
	return groups
}

// unlisted are kinds of groups that are no part of client-go's scheme.
var unlisted = []schema.GroupKind{
	{Group: groupAPIExtensions, Kind: "CustomResourceDefinition"},
	{Group: "apiregistration.k8s.io", Kind: "APIService"},
}

const groupAPIExtensions = "apiextensions.k8s.io"
