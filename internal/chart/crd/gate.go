package crd

import (
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validate asks the API server's own code whether it would take the schema.
func validate(schema *apiextensionsv1.JSONSchemaProps) error {
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(schema, &internal, nil); err != nil {
		return err
	}
	s, err := structural.NewStructural(&internal)
	if err != nil {
		return err
	}
	return structural.ValidateStructural(field.NewPath("openAPIV3Schema"), s).ToAggregate()
}
