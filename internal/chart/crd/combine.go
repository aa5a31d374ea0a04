package crd

import (
	"maps"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// combine converts the remaining allOf, anyOf, oneOf and not to value validations:
// schemas that do not declare fields and only reject values.
//
// A branch that can only be expressed in part accepts too many values. This is
// harmless in allOf and anyOf. In oneOf two branches could match, so oneOf becomes
// anyOf. In not it would reject valid values, so not is omitted.
func (c *converter) combine(n node, out *apiextensionsv1.JSONSchemaProps, at location) {
	shape := *out
	for _, schema := range anyList(n["allOf"]) {
		branch, exact := c.narrow(schema, &shape, at)
		if !isTrivial(branch) {
			out.AllOf = append(out.AllOf, branch)
		}
		if !exact {
			c.lose(at, "allOf, in part")
		}
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		schemas, ok := n[key].([]any)
		if !ok {
			continue
		}
		branches, exact := c.branches(schemas, &shape, at)
		switch {
		case key == "oneOf" && exact:
			out.OneOf = branches
		case slices.ContainsFunc(branches, isTrivial):
		case out.AnyOf == nil:
			out.AnyOf = branches
		case branches != nil:
			out.AllOf = append(out.AllOf, apiextensionsv1.JSONSchemaProps{AnyOf: branches})
		}
		switch {
		case exact:
		case branches == nil:
			c.lose(at, key)
		default:
			c.lose(at, key+", in part")
		}
	}
	if schema, ok := n["not"]; ok {
		if branch, exact := c.narrow(schema, &shape, at); exact {
			out.Not = &branch
		} else {
			c.lose(at, "not")
		}
	}
}

// branches converts each schema by narrow. It returns nil if one of them accepts
// every value of the shape, so that the others have no effect.
func (c *converter) branches(schemas []any, shape *apiextensionsv1.JSONSchemaProps, at location) (branches []apiextensionsv1.JSONSchemaProps, exact bool) {
	exact = true
	trivial := false
	for _, schema := range schemas {
		branch, ok := c.narrow(schema, shape, at)
		exact = exact && ok
		trivial = trivial || isTrivial(branch)
		branches = append(branches, branch)
	}
	if trivial && !exact {
		return nil, false
	}
	return branches, exact
}

// narrowing holds the keywords that narrow converts.
var narrowing = []string{
	"type", "enum", "required", "properties", "items", "minProperties", "maxProperties", "minItems", "maxItems",
	"minLength", "maxLength", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "format",
	"allOf", "anyOf", "oneOf", "not",
}

// narrow returns a schema's validations for a value of the given shape, and reports
// whether they are equivalent to the schema.
func (c *converter) narrow(schema any, shape *apiextensionsv1.JSONSchemaProps, at location) (out apiextensionsv1.JSONSchemaProps, exact bool) {
	*c.nodes++
	if *c.nodes > maxNodes {
		return out, false
	}
	trial := c.trial()
	n, at := trial.resolve(schema, at)
	exact = true
	for key, value := range n {
		if !isAnnotation(key) && !slices.Contains(narrowing, key) {
			exact = exact && (key == "additionalProperties" && isTrue(value) || key == "uniqueItems" && isFalse(value))
		}
	}
	kind := shapeTypes(shape)
	if declared, ok := n["type"]; ok {
		wanted := newTypes(typeList(declared))
		if kind.disjoint(wanted) {
			return apiextensionsv1.JSONSchemaProps{Not: &apiextensionsv1.JSONSchemaProps{}}, exact
		}
		exact = exact && kind.within(wanted)
	}
	exact = trial.narrowObject(n, shape, at, &out) && exact
	exact = trial.narrowItems(n, shape, at, &out) && exact
	if list, ok := n["enum"].([]any); ok {
		if values, null, plain := plainValues(list); plain && !null && len(values) > 0 {
			out.Enum = values
		} else {
			exact = false
		}
	}
	trial.scalars(n, kind, at, &out)

	// Nested combinations have the same shape.
	inner := *shape
	inner.AllOf, inner.AnyOf, inner.OneOf, inner.Not = nil, nil, nil, nil
	trial.combine(n, &inner, at)
	out.AllOf, out.AnyOf, out.OneOf, out.Not = inner.AllOf, inner.AnyOf, inner.OneOf, inner.Not
	return out, exact && len(trial.warnings) == 0
}

// narrowObject converts the keywords for objects. If the chart has defaults, Helm
// checks a value with more keys than the user's value.
func (c *converter) narrowObject(n node, shape *apiextensionsv1.JSONSchemaProps, at location, out *apiextensionsv1.JSONSchemaProps) (exact bool) {
	exact = true
	defaults, _ := at.value.(map[string]any)
	for _, name := range anyList(n["required"]) {
		name, _ := name.(string)
		if _, has := defaults[name]; has {
			exact = false
			continue
		}
		out.Required = append(out.Required, name)
	}
	properties, _ := n["properties"].(node)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		_, has := defaults[name]
		exact = exact && !has
		inner, declared := shape.Properties[name]
		if !declared || name == "metadata" {
			exact = exact && isTrue(properties[name])
			continue
		}
		field, fieldExact := c.narrow(properties[name], &inner, at.child(name))
		exact = exact && fieldExact
		if isTrivial(field) {
			continue
		}
		if out.Properties == nil {
			out.Properties = props{}
		}
		out.Properties[name] = field
	}
	count(n, out, defaults)
	return exact && (len(defaults) == 0 || n["minProperties"] == nil && n["maxProperties"] == nil)
}

func (c *converter) narrowItems(n node, shape *apiextensionsv1.JSONSchemaProps, at location, out *apiextensionsv1.JSONSchemaProps) (exact bool) {
	out.MinItems, out.MaxItems = whole(n["minItems"]), whole(n["maxItems"])
	items, ok := n["items"]
	if !ok {
		return true
	}
	if _, isTuple := items.([]any); isTuple || shape.Items == nil {
		return false
	}
	item, exact := c.narrow(items, shape.Items.Schema, at.item())
	if !isTrivial(item) {
		out.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &item}
	}
	return exact
}

// shapeTypes returns the types that a structural schema accepts.
func shapeTypes(s *apiextensionsv1.JSONSchemaProps) types {
	switch {
	case s.Type != "":
		return newTypes([]string{s.Type})
	case s.XIntOrString:
		return newTypes([]string{"integer", "string"})
	}
	return types{}
}

func isTrivial(s apiextensionsv1.JSONSchemaProps) bool {
	return reflect.DeepEqual(s, apiextensionsv1.JSONSchemaProps{})
}
