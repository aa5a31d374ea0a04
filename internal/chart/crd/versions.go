package crd

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/watches"
)

// versions returns the versions of a kind, in the order of its watches entry.
// They differ in name alone, so that the API server converts one to another by
// writing another apiVersion.
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
