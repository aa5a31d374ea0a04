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
	// cluster is true if the resource is cluster-scoped.
	cluster bool
	// guessed is true if the kind is unknown, so that the name follows the convention.
	guessed bool
}

// assumption returns a note that the resource of a kind is guessed, empty if it is known.
func (r resource) assumption(kind string) string {
	if !r.guessed {
		return ""
	}
	return fmt.Sprintf(" (%s is not a kind of Kubernetes: its resource is assumed to be %s)", kind, r.Resource)
}

// resources holds the known resources of kinds that are not part of Kubernetes.
type resources map[schema.GroupKind]resource

// resourcesOf returns the resources of the kinds that the operator serves.
func resourcesOf(kinds []catalog.Kind) resources {
	known := resources{}
	for _, kind := range kinds {
		known[kind.GVK().GroupKind()] = resource{GroupResource: crd.Resource(kind), cluster: kind.Scope == watches.ScopeCluster}
	}
	return known
}

// define adds the resource that a CRD defines.
func (r resources) define(definition *unstructured.Unstructured) error {
	kind, plural, cluster := chart.DefinedKind(definition)
	if kind.Group == "" || kind.Kind == "" || plural == "" {
		return fmt.Errorf("CustomResourceDefinition %s: want spec.group, spec.names.kind and spec.names.plural", definition.GetName())
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
		// The kind is not part of Kubernetes.
		guessed: !slices.Contains(groupsOf(kind.Kind), kind.Group),
	}
}

// guess returns the usual name of a kind's resource, which is correct for all kinds of
// Kubernetes.
func guess(kind string) string {
	if lower := strings.ToLower(kind); strings.HasSuffix(lower, "endpoints") {
		return lower
	}
	return watches.DefaultPlural(kind)
}

// groupsOf returns the groups of Kubernetes that contain a kind with this name, except
// the removed group extensions.
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

// unlisted holds kinds of Kubernetes that are missing in client-go's scheme.
var unlisted = []schema.GroupKind{
	{Group: groupAPIExtensions, Kind: "CustomResourceDefinition"},
	{Group: "apiregistration.k8s.io", Kind: "APIService"},
}

const groupAPIExtensions = "apiextensions.k8s.io"
