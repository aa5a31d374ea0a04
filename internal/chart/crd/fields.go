package crd

import (
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/catalog/kindstatus"
)

// addFields puts the kind's own fields into the schema of its status, with the
// types that their expressions have.
func addFields(kind catalog.Kind, status *apiextensionsv1.JSONSchemaProps) {
	for _, name := range kind.Fields.Names() {
		shape, _ := kind.Fields.Shape(name)
		schema := shaped(shape)
		schema.Description = "Computed from what runs: " + strings.Join(strings.Fields(kind.Status[name]), " ")
		status.Properties[name] = schema
	}
}

// shaped is the schema of what an expression gives. What is not known before
// stays open.
func shaped(shape kindstatus.Shape) apiextensionsv1.JSONSchemaProps {
	s := apiextensionsv1.JSONSchemaProps{Type: string(shape.Type), Format: shape.Format}
	switch shape.Type {
	case "":
		s.XPreserveUnknownFields = new(true)
	case kindstatus.TypeInteger:
		s.Format = "int64"
	case kindstatus.TypeList:
		item := shaped(*shape.Item)
		s.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &item}
		s.XListType = new("atomic")
	case kindstatus.TypeMap:
		item := shaped(*shape.Item)
		s.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &item}
	}
	return s
}

// scaleTypes tells whether what kubectl scale reads of the status is of the type
// that it needs. The API server finds out when it is asked.
func scaleTypes(kind catalog.Kind) error {
	scale := kind.Subresources.Scale
	if scale == nil {
		return nil
	}
	for _, at := range []struct {
		key, path string
		want      kindstatus.Type
	}{
		{"statusReplicasPath", scale.StatusReplicasPath, kindstatus.TypeInteger},
		{"labelSelectorPath", scale.LabelSelectorPath, kindstatus.TypeString},
	} {
		name, ok := strings.CutPrefix(at.path, ".status.")
		if shape, own := kind.Fields.Shape(name); ok && own && shape.Type != "" && shape.Type != at.want {
			return fmt.Errorf("subresources.scale.%s: the field %s is of the type %s, and has to be of the type %s", at.key, at.path, shape.Type, at.want)
		}
	}
	return nil
}
