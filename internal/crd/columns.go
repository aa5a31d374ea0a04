package crd

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/chartwright/chartwright/internal/api"
)

// columns returns what kubectl get prints, in the order of printing. Those of
// priority 1 appear with -o wide.
func columns() []apiextensionsv1.CustomResourceColumnDefinition {
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
