package crd

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/chartwright/chartwright/internal/catalog"
)

// subresources returns the status, which every kind has, and the scale of those
// whose watches entry says where its numbers are.
func subresources(kind catalog.Kind) *apiextensionsv1.CustomResourceSubresources {
	s := &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
	if scale := kind.Subresources.Scale; scale != nil {
		s.Scale = &apiextensionsv1.CustomResourceSubresourceScale{
			SpecReplicasPath:   scale.SpecReplicasPath,
			StatusReplicasPath: scale.StatusReplicasPath,
		}
		if scale.LabelSelectorPath != "" {
			s.Scale.LabelSelectorPath = &scale.LabelSelectorPath
		}
	}
	return s
}

// holdsScale tells whether what is scaled can be stored. The API server takes
// a path to anywhere; it then drops what kubectl scale writes and says nothing.
func holdsScale(kind catalog.Kind, schema *apiextensionsv1.JSONSchemaProps) error {
	at := *schema
	for _, field := range kind.ScalePath() {
		next, ok := at.Properties[field]
		switch {
		case ok:
			at = next
		case at.XPreserveUnknownFields != nil && *at.XPreserveUnknownFields:
			return nil
		case at.AdditionalProperties != nil && at.AdditionalProperties.Schema != nil:
			at = *at.AdditionalProperties.Schema
		default:
			return fmt.Errorf("subresources.scale.specReplicasPath: the chart's values.schema.json knows no %s", kind.Subresources.Scale.SpecReplicasPath)
		}
	}
	return nil
}
