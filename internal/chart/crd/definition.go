package crd

import (
	"cmp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/watches"
)

func crdOf(kind catalog.Kind, schema *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		TypeMeta: metav1.TypeMeta{
			APIVersion: apiextensionsv1.SchemeGroupVersion.String(),
			Kind:       "CustomResourceDefinition",
		},
		ObjectMeta: metav1.ObjectMeta{Name: Name(kind)},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group:    kind.Group,
			Scope:    apiextensionsv1.ResourceScope(cmp.Or(kind.Scope, watches.ScopeNamespaced)),
			Names:    namesOf(kind.Watch),
			Versions: versions(kind, schema),
		},
	}
}

// subresources returns the subresource status of every kind, and the subresource
// scale of kinds whose watches entry configures it.
func subresources(kind catalog.Kind) *apiextensionsv1.CustomResourceSubresources {
	return &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}, Scale: kind.Subresources.Scale}
}

// Name returns the name of the CRD of a kind.
func Name(kind catalog.Kind) string { return Resource(kind).String() }

// Resource returns the resource of a kind.
func Resource(kind catalog.Kind) schema.GroupResource {
	return schema.GroupResource{Group: kind.Group, Resource: namesOf(kind.Watch).Plural}
}

// category contains every kind that Chartwright serves: kubectl get chartwright
// lists their custom resources.
const category = "chartwright"

// namesOf returns the names of a kind from its watches entry. Missing names are
// derived from the kind.
func namesOf(entry watches.Watch) apiextensionsv1.CustomResourceDefinitionNames {
	categories := slices.Clone(entry.Categories)
	if !slices.Contains(categories, category) {
		categories = append(categories, category)
	}
	return apiextensionsv1.CustomResourceDefinitionNames{
		Kind:       entry.Kind,
		ListKind:   entry.Kind + "List",
		Singular:   entry.SingularName(),
		Plural:     entry.PluralName(),
		ShortNames: entry.ShortNames,
		Categories: categories,
	}
}

// versions returns the versions of a kind, in the order of its watches entry. They
// have the same schema, so that the API server converts objects by replacing the
// apiVersion.
func versions(kind catalog.Kind, schema *apiextensionsv1.JSONSchemaProps) []apiextensionsv1.CustomResourceDefinitionVersion {
	listed := kind.Versions
	if len(listed) == 0 {
		listed = []watches.CRDVersion{{Name: kind.Version, Storage: true}}
	}
	all := make([]apiextensionsv1.CustomResourceDefinitionVersion, len(listed))
	for i, v := range listed {
		all[i] = apiextensionsv1.CustomResourceDefinitionVersion{
			Name:                     v.Name,
			Served:                   v.IsServed(),
			Storage:                  v.Storage,
			Deprecated:               v.Deprecated,
			Schema:                   &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: schema},
			Subresources:             subresources(kind),
			AdditionalPrinterColumns: columns(kind),
		}
		if v.DeprecationWarning != "" {
			all[i].DeprecationWarning = &v.DeprecationWarning
		}
	}
	return all
}

// columns returns the printer columns in the order of the output of kubectl get. If a kind has columns of its own, the usual ones appear only with -o wide.
func columns(kind catalog.Kind) []apiextensionsv1.CustomResourceColumnDefinition {
	if len(kind.AdditionalPrinterColumns) == 0 {
		return usual()
	}
	all := slices.Clone(kind.AdditionalPrinterColumns)
	for _, column := range usual() {
		column.Priority = 1
		if !slices.ContainsFunc(kind.AdditionalPrinterColumns, func(own apiextensionsv1.CustomResourceColumnDefinition) bool {
			return strings.EqualFold(own.Name, column.Name)
		}) {
			all = append(all, column)
		}
	}
	return all
}

// usual returns the columns of every kind. Columns of priority 1 appear only with
// -o wide.
func usual() []apiextensionsv1.CustomResourceColumnDefinition {
	return []apiextensionsv1.CustomResourceColumnDefinition{
		{
			Name: "Ready", Type: "string", JSONPath: `.status.conditions[?(@.type=="` + api.ConditionReady + `")].status`,
			Description: "Whether the release matches the current spec and its resources are ready.",
		},
		{
			Name: "Status", Type: "string", JSONPath: ".status.state",
			Description: "State of the release in one or two words.",
		},
		{
			Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp",
		},
		{
			Name: "Revision", Type: "integer", JSONPath: ".status.release.revision", Priority: 1,
			Description: "Newest revision of the release.",
		},
		{
			Name: "Chart", Type: "string", JSONPath: ".status.release.chart", Priority: 1,
			Description: "Name and version of the chart.",
		},
		{
			Name: "Message", Type: "string", JSONPath: `.status.conditions[?(@.type=="` + api.ConditionReady + `")].message`, Priority: 1,
			Description: "Message of the condition " + api.ConditionReady + ".",
		},
	}
}
