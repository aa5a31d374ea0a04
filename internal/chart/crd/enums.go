package crd

import (
	"encoding/json"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// enum converts a list of values. Those that hold keys or items are left to
// Helm: defaults may be merged into them.
func (c *converter) enum(n node, out *apiextensionsv1.JSONSchemaProps, at place) {
	list, ok := n["enum"].([]any)
	if !ok {
		return
	}
	values, null, plain := plainValues(list)
	if !plain {
		c.lose(at, "enum of objects or lists")
		out.Nullable = out.Nullable && null
		return
	}
	switch {
	case !null || !out.Nullable:
		out.Nullable = false
		out.Enum = values
	case len(values) > 0:
		// An enum beside nullable refuses null, even if it lists it. One level
		// deeper, null is not looked at.
		out.AllOf = append(out.AllOf, apiextensionsv1.JSONSchemaProps{Enum: values})
	}
}

// plainValues returns the values of an enum but null, and whether null is among
// them. It is not plain if a value is an object or a list.
func plainValues(list []any) (values []apiextensionsv1.JSON, null, plain bool) {
	for _, value := range list {
		switch v := value.(type) {
		case nil:
			null = true
		case string:
			data, err := json.Marshal(v)
			if err != nil {
				return nil, null, false
			}
			values = append(values, apiextensionsv1.JSON{Raw: data})
		case bool:
			values = append(values, apiextensionsv1.JSON{Raw: []byte(strconv.FormatBool(v))})
		case json.Number:
			values = append(values, apiextensionsv1.JSON{Raw: []byte(v.String())})
		default:
			return nil, null, false
		}
	}
	return values, null, true
}
