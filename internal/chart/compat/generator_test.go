package compat_test

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"pgregory.net/rapid"
)

// The generators use few distinct words, so that drawn schemas and values often have
// the same keys.

func oneOf[T any](t *rapid.T, of ...T) T { return rapid.SampledFrom(of).Draw(t, "one of") }

// chance returns true once in n times.
func chance(t *rapid.T, n int) bool { return rapid.IntRange(1, n).Draw(t, "chance") == n }

func object() *rapid.Generator[*schemaProps] {
	return rapid.Custom(func(t *rapid.T) *schemaProps {
		s := &schemaProps{Type: "object"}
		fillObject(t, s, 2)
		conditions(t, s, 2)
		return s
	})
}

// shape draws a schema that is valid at any path.
func shape(t *rapid.T, depth int) *schemaProps {
	s := &schemaProps{}
	switch kinds := []string{"string", "integer", "number", "boolean", "", "either", "object", "array"}; oneOf(t, kinds[:len(kinds)-2*(1-min(depth, 1))]...) {
	case "string":
		s.Type = "string"
	case "integer":
		s.Type = "integer"
	case "number":
		s.Type = "number"
	case "boolean":
		s.Type = "boolean"
	case "either":
		s.XIntOrString = true
	case "":
		s.XPreserveUnknownFields = new(true)
		if depth > 0 && chance(t, 2) {
			fillObject(t, s, depth)
		}
		if depth > 0 && chance(t, 3) {
			s.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: shape(t, depth-1)}
		}
	case "object":
		s.Type = "object"
		fillObject(t, s, depth)
	case "array":
		s.Type = "array"
		s.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: shape(t, depth-1)}
	}
	s.Nullable = chance(t, 3)
	narrow(t, s)
	conditions(t, s, depth)
	return s
}

func fillObject(t *rapid.T, s *schemaProps, depth int) {
	switch rapid.IntRange(0, 3).Draw(t, "keys") {
	case 0:
		s.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: shape(t, depth-1)}
		return
	case 1:
		s.XPreserveUnknownFields = new(true)
	}
	for range rapid.IntRange(0, 3).Draw(t, "properties") {
		if s.Properties == nil {
			s.Properties = map[string]schemaProps{}
		}
		s.Properties[key(t)] = *shape(t, depth-1)
	}
}

func key(t *rapid.T) string { return oneOf(t, "a", "b", "c") }

// narrow adds some validations, regardless of the type.
func narrow(t *rapid.T, s *schemaProps) {
	for range rapid.IntRange(0, 2).Draw(t, "narrow") {
		switch rapid.IntRange(0, 9).Draw(t, "by") {
		case 0:
			s.Minimum, s.ExclusiveMinimum = new(oneOf(t, 0.0, 1, 2, -0.5, 0.5)), chance(t, 3)
		case 1:
			s.Maximum, s.ExclusiveMaximum = new(oneOf(t, 0.0, 1, 2, 3, 1.5, 0.5)), chance(t, 3)
		case 2:
			s.MultipleOf = new(oneOf(t, 1.0, 2, 0.5))
		case 3:
			s.MinLength = new(int64(rapid.IntRange(0, 2).Draw(t, "minLength")))
		case 4:
			s.MaxLength = new(int64(rapid.IntRange(0, 2).Draw(t, "maxLength")))
		case 5:
			s.Pattern = oneOf(t, "a", "^b", "b$")
		case 6:
			s.Enum = enum(t)
		case 7:
			s.MinItems, s.MinProperties = new(int64(1)), new(int64(1))
		case 8:
			s.MaxItems, s.MaxProperties = new(int64(1)), new(int64(rapid.IntRange(0, 2).Draw(t, "maxProperties")))
		case 9:
			if s.Required = append(s.Required, key(t)); len(s.Required) > 1 {
				slices.Sort(s.Required)
				s.Required = slices.Compact(s.Required)
			}
		}
	}
}

func enum(t *rapid.T) []apiextensionsv1.JSON {
	var values []apiextensionsv1.JSON
	for range rapid.IntRange(1, 3).Draw(t, "enum") {
		values = append(values, apiextensionsv1.JSON{Raw: []byte(oneOf(t, `"a"`, `"b"`, `"ab"`, "1", "2", "true"))})
	}
	return values
}

// conditions adds allOf, anyOf, oneOf and not to a schema.
func conditions(t *rapid.T, s *schemaProps, depth int) {
	some := func() []schemaProps {
		var branches []schemaProps
		for range rapid.IntRange(1, 2).Draw(t, "branches") {
			branches = append(branches, condition(t, s, depth))
		}
		return branches
	}
	if chance(t, 4) {
		s.AllOf = some()
	}
	if chance(t, 4) {
		s.AnyOf = some()
	}
	if chance(t, 6) {
		s.OneOf = some()
	}
	if chance(t, 6) {
		s.Not = new(condition(t, s, depth))
	}
}

// condition draws a condition on properties that the schema declares, as the API
// server requires.
func condition(t *rapid.T, of *schemaProps, depth int) schemaProps {
	var s schemaProps
	narrow(t, &s)
	if depth == 0 {
		return s
	}
	for _, name := range []string{"a", "b", "c"} {
		if field, ok := of.Properties[name]; ok && chance(t, 2) {
			if s.Properties == nil {
				s.Properties = map[string]schemaProps{}
			}
			s.Properties[name] = condition(t, &field, depth-1)
		}
	}
	if of.Items != nil && chance(t, 2) {
		s.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: new(condition(t, of.Items.Schema, depth-1))}
	}
	return s
}

// mutated returns a copy of a schema with a few random changes.
func mutated(t *rapid.T, from *schemaProps) *schemaProps {
	s := from.DeepCopy()
	for range rapid.IntRange(1, 3).Draw(t, "changes") {
		change(t, s, 2)
	}
	return s
}

func change(t *rapid.T, s *schemaProps, depth int) {
	for _, name := range []string{"a", "b", "c"} {
		if inner, ok := s.Properties[name]; ok && chance(t, 3) {
			change(t, &inner, depth-1)
			s.Properties[name] = inner
			return
		}
	}
	if s.Items != nil && chance(t, 2) {
		change(t, s.Items.Schema, depth-1)
		return
	}
	if s.AdditionalProperties != nil && chance(t, 2) {
		change(t, s.AdditionalProperties.Schema, depth-1)
		return
	}
	for _, branches := range [][]schemaProps{s.AllOf, s.AnyOf, s.OneOf} {
		if len(branches) > 0 && chance(t, 2) {
			narrow(t, &branches[0])
			return
		}
	}
	switch rapid.IntRange(0, 5).Draw(t, "change") {
	case 0:
		narrow(t, s)
	case 1:
		conditions(t, s, max(depth, 0))
	case 2:
		s.Nullable = !s.Nullable
	case 3:
		s.AllOf, s.AnyOf, s.OneOf, s.Not = s.AnyOf, s.OneOf, nil, nil
	case 4:
		*s = schemaProps{
			Type: s.Type, XIntOrString: s.XIntOrString, XPreserveUnknownFields: s.XPreserveUnknownFields,
			Properties: s.Properties, Items: s.Items, AdditionalProperties: s.AdditionalProperties,
		}
	case 5:
		if s.Type == "object" && depth > 0 {
			s.Properties, s.AdditionalProperties, s.XPreserveUnknownFields = nil, nil, nil
			fillObject(t, s, depth)
		}
	}
}

// guided draws a value that the schema is likely to accept.
func guided(t *rapid.T, s *schemaProps, depth int) any {
	switch {
	case s != nil && s.Nullable && chance(t, 5):
		return nil
	case s == nil || s.Type == "" && !s.XIntOrString:
		return anyValue(t, s, depth)
	case s.XIntOrString:
		return oneOf[any](t, "a", "b", "ab", int64(1), int64(2))
	}
	switch s.Type {
	case "string":
		return oneOf(t, "", "a", "b", "ab", "bb")
	case "integer":
		return int64(rapid.IntRange(0, 4).Draw(t, "integer"))
	case "number":
		return oneOf[any](t, 0.5, 1.5, int64(1), int64(2))
	case "boolean":
		return rapid.Bool().Draw(t, "boolean")
	case "array":
		return items(t, s.Items, depth)
	default:
		return keys(t, s, depth)
	}
}

func anyValue(t *rapid.T, s *schemaProps, depth int) any {
	n := 5
	if depth > 0 {
		n = 7
	}
	switch rapid.IntRange(1, n).Draw(t, "kind") {
	case 1:
		return oneOf(t, "a", "ab")
	case 2:
		return int64(rapid.IntRange(0, 3).Draw(t, "integer"))
	case 3:
		return true
	case 4:
		return 0.5
	case 5:
		return nil
	case 6:
		var item *apiextensionsv1.JSONSchemaPropsOrArray
		if s != nil {
			item = s.Items
		}
		return items(t, item, depth)
	default:
		if s == nil {
			s = &schemaProps{}
		}
		return keys(t, s, depth)
	}
}

func items(t *rapid.T, of *apiextensionsv1.JSONSchemaPropsOrArray, depth int) any {
	list := []any{}
	for range rapid.IntRange(0, 2).Draw(t, "items") {
		var item *schemaProps
		if of != nil {
			item = of.Schema
		}
		list = append(list, guided(t, item, depth-1))
	}
	return list
}

func keys(t *rapid.T, s *schemaProps, depth int) any {
	object := map[string]any{}
	for _, name := range []string{"a", "b", "c"} {
		field, declared := s.Properties[name]
		if !declared && s.AdditionalProperties != nil {
			field, declared = *s.AdditionalProperties.Schema, true
		}
		switch {
		case declared && (chance(t, 2) || slices.Contains(s.Required, name)):
			object[name] = guided(t, &field, depth-1)
		case !declared && slices.Contains(s.Required, name), chance(t, 4):
			object[name] = anyValue(t, nil, 0)
		}
	}
	return object
}
