package crd

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// array converts what a schema says of lists.
func (c *converter) array(n node, out *apiextensionsv1.JSONSchemaProps, at place) {
	item := anything()
	switch schema := n["items"].(type) {
	case node, bool:
		item = c.convert(schema, at.item())
	case []any:
		c.lose(at, "items: one schema for each position")
	}
	if _, ok := n["prefixItems"]; ok {
		c.lose(at, "prefixItems")
		item = anything()
	}
	if out.Type == "array" || !isAnything(item) {
		out.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &item}
	}
	out.MinItems, out.MaxItems = whole(n["minItems"]), whole(n["maxItems"])
	if isTrue(n["uniqueItems"]) {
		c.lose(at, "uniqueItems")
	}
}
