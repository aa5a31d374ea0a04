package crd

import (
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// object converts what a schema says of objects. An object is one of three:
// open, with the properties it names and any other; closed, with those alone;
// or a map, whose values are of one schema.
func (c *converter) object(n node, out *apiextensionsv1.JSONSchemaProps, at place) {
	properties, _ := n["properties"].(node)
	required := anyList(n["required"])
	converted := make(props, len(properties))
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		field := c.convert(properties[name], at.child(name))
		// Null takes the chart's default away.
		if len(field.Enum) == 0 && !slices.Contains(required, any(name)) {
			field.Nullable = true
		}
		converted[name] = field
	}
	if len(converted) > 0 {
		out.Properties = converted
	}
	c.others(n, out, at)

	defaults, _ := at.value.(map[string]any)
	for _, name := range required {
		if name, ok := name.(string); ok && !supplied(name, defaults, converted) {
			out.Required = append(out.Required, name)
		}
	}
	count(n, out, defaults)
	if len(defaults) > 0 && (n["minProperties"] != nil || n["maxProperties"] != nil) {
		c.lose(at, "minProperties and maxProperties, as defaults count")
	}
}

// count limits the number of keys, which the API server can tell only where no
// default adds some and no null takes some away.
func count(n node, out *apiextensionsv1.JSONSchemaProps, defaults map[string]any) {
	if len(defaults) == 0 {
		out.MinProperties, out.MaxProperties = whole(n["minProperties"]), whole(n["maxProperties"])
	}
}

// others decides about the keys that are not among the properties.
func (c *converter) others(n node, out *apiextensionsv1.JSONSchemaProps, at place) {
	value, given := n["additionalProperties"]
	patterns, _ := n["patternProperties"].(node)
	closed := isFalse(value)
	switch {
	case out.Type != "object":
		// Any type at all: it is kept as it is.
		if given && !isTrue(value) {
			c.lose(at, "additionalProperties")
		}
		if len(patterns) > 0 {
			c.lose(at, "patternProperties")
		}
	case closed && len(patterns) == 0:
		return
	case closed && len(patterns) == 1 && len(out.Properties) == 0:
		// A map whose keys have a form.
		for pattern, schema := range patterns {
			c.lose(at, fmt.Sprintf("patternProperties: that keys match %s", pattern))
			c.entries(schema, out, at)
		}
		return
	case len(patterns) > 0:
		c.lose(at, "patternProperties")
		if closed {
			c.lose(at, "additionalProperties: false")
		}
	case given && !isTrue(value) && len(out.Properties) == 0:
		c.entries(value, out, at)
		return
	case given && !isTrue(value):
		if !isAnything(c.trial().convert(value, at.entry())) {
			c.lose(at, "additionalProperties: what values of other keys are like")
		}
	}
	out.XPreserveUnknownFields = new(true)
}

// entries makes the object a map.
func (c *converter) entries(schema any, out *apiextensionsv1.JSONSchemaProps, at place) {
	entry := c.convert(schema, at.entry())
	if isAnything(entry) {
		out.XPreserveUnknownFields = new(true)
		return
	}
	// Null takes an entry of the chart's defaults away.
	if defaults, _ := at.value.(map[string]any); len(defaults) > 0 && len(entry.Enum) == 0 {
		entry.Nullable = true
	}
	out.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &entry}
}

// supplied tells that the chart's defaults have the key, and in it whatever is
// required.
func supplied(name string, defaults map[string]any, properties props) bool {
	value, ok := defaults[name]
	if !ok {
		return false
	}
	field, declared := properties[name]
	if value == nil {
		return !declared || field.Nullable
	}
	return len(field.Required) == 0
}
