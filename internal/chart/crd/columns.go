package crd

import (
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/catalog"
)

// columns returns what kubectl get prints, in the order of printing. A kind with
// columns of its own shows these, and every other with -o wide.
func columns(kind catalog.Kind) []apiextensionsv1.CustomResourceColumnDefinition {
	if len(kind.AdditionalPrinterColumns) == 0 {
		return usual()
	}
	all := make([]apiextensionsv1.CustomResourceColumnDefinition, 0, len(kind.AdditionalPrinterColumns)+len(usual()))
	named := map[string]bool{}
	for _, own := range kind.AdditionalPrinterColumns {
		all = append(all, apiextensionsv1.CustomResourceColumnDefinition{
			Name: own.Name, Type: own.Type, Format: own.Format, Description: own.Description, Priority: own.Priority, JSONPath: own.JSONPath,
		})
		named[strings.ToLower(own.Name)] = true
	}
	for _, column := range usual() {
		column.Priority = 1
		if !named[strings.ToLower(column.Name)] {
			all = append(all, column)
		}
	}
	return all
}

// usual are the columns of every kind. Those of priority 1 appear with -o wide.
func usual() []apiextensionsv1.CustomResourceColumnDefinition {
	return []apiextensionsv1.CustomResourceColumnDefinition{
		{
			Name: "Ready", Type: "string", JSONPath: `.status.conditions[?(@.type=="` + api.ConditionReady + `")].status`,
			Description: "Whether the release serves the current spec.",
		},
		{
			Name: "Status", Type: "string", JSONPath: ".status.state",
			Description: "The release's state in a word or two.",
		},
		{
			Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp",
		},
		{
			Name: "Revision", Type: "integer", JSONPath: ".status.release.revision", Priority: 1,
			Description: "The newest revision of the release.",
		},
		{
			Name: "Chart", Type: "string", JSONPath: ".status.release.chart", Priority: 1,
			Description: "Name and version of the chart.",
		},
	}
}
