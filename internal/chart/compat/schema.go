package compat

import (
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

type props = apiextensionsv1.JSONSchemaProps

// site is a schema and its context.
type site struct {
	schema *props
	// shape is true if the schema decides which fields are kept. Schemas in allOf,
	// anyOf, oneOf and not only reject values.
	shape bool
	// kept is true if a parent preserves unknown fields here, too.
	kept bool
	// kinds are the types that a value can have here; nil means any type.
	kinds types
}

// anything returns a schema that accepts any value.
func anything() *props { return &props{XPreserveUnknownFields: new(true), Nullable: true} }

// open reports whether undeclared keys are kept.
func (s site) open() bool {
	return s.kept || s.schema.XPreserveUnknownFields != nil && *s.schema.XPreserveUnknownFields
}

// at returns the site of a nested schema.
func (s site) at(inner *props) site { return site{schema: inner, shape: s.shape} }

// types returns the types of the values here.
func (s site) types() types { return typesOf(s.schema).intersect(s.kinds) }

// acceptsNull reports whether null is neither rejected nor dropped. An enum rejects
// null even if it lists null.
func (s site) acceptsNull() bool { return s.schema.Nullable && len(s.schema.Enum) == 0 }

// schema compares the old and the new schema of one value.
func (c *comparer) schema(from, to site, at string) {
	was, is := from.types(), to.types()
	if !was.within(typesOf(to.schema)) {
		c.breaksf(TypeChanged, at, "type changed from %s to %s", was, is)
		return
	}
	if from.shape && !is.within(was) {
		c.notef(Widened, at, "type changed from %s to %s", was, is)
	}
	before := len(c.changes)
	c.enum(from, to, at)
	if enumUnchanged := len(c.changes) == before; from.shape && enumUnchanged && from.acceptsNull() && !to.acceptsNull() {
		c.breaksf(NullableRemoved, at, "null is no longer allowed")
	}
	if was.has("number") || was.has("integer") {
		c.numbers(from.schema, to.schema, at, !was.has("number"))
	}
	if was.has("string") {
		c.texts(from.schema, to.schema, at)
	}
	c.format(from.schema, to.schema, at)
	if was.has("array") {
		c.lists(from, to, at)
	}
	if was.has("object") {
		c.objects(from, to, at)
	}
	c.combined(from, to, at)
	c.rules(from.schema, to.schema, at)
	if from.shape && !reflect.DeepEqual(from.schema.Default, to.schema.Default) {
		c.notef(DefaultChanged, at, "default changed from %s to %s", shown(from.schema.Default), shown(to.schema.Default))
	}
}

// accepts reports whether a schema accepts all values that another one accepts. It
// can return false although the schema does, but never returns true wrongly.
func accepts(from, to *props, kinds types) bool {
	c := &comparer{}
	c.schema(site{schema: from, kinds: kinds}, site{schema: to, kinds: kinds}, "")
	return !slices.ContainsFunc(c.changes, func(change Change) bool { return change.Breaking })
}

func shown(value *apiextensionsv1.JSON) string {
	if value == nil {
		return "none"
	}
	return string(value.Raw)
}

// types are the sorted types of a value without null; nil means any type.
type types []string

// typesOf returns the types that a schema accepts.
func typesOf(s *props) types {
	switch {
	case s.XIntOrString:
		return types{"integer", "string"}
	case s.Type == "":
		return nil
	default:
		return types{s.Type}
	}
}

func (t types) has(name string) bool { return t == nil || slices.Contains(t, name) }

// within reports whether every value of these types is also of the other types.
func (t types) within(other types) bool {
	return other == nil || t != nil && !slices.ContainsFunc(t, func(name string) bool {
		return !other.has(name) && (name != "integer" || !other.has("number"))
	})
}

// intersect returns the narrower set. One of the two must contain the other.
func (t types) intersect(other types) types {
	if t == nil || other.within(t) && other != nil {
		return other
	}
	return t
}

// String formats the types for users.
func (t types) String() string {
	if t == nil {
		return "any"
	}
	return strings.Join(t, " or ")
}

// combined compares allOf, anyOf, oneOf and not. A new condition is compatible if all
// values that were accepted before satisfy it.
func (c *comparer) combined(from, to site, at string) {
	was, is := plain(from.schema), plain(to.schema)
	kinds := from.types()
	for i := range is.AllOf {
		branch := &is.AllOf[i]
		implied := accepts(was, branch, kinds) ||
			slices.ContainsFunc(was.AllOf, func(old props) bool { return accepts(&old, branch, kinds) })
		switch {
		case implied:
		case i < len(was.AllOf):
			c.schema(site{schema: &was.AllOf[i], kinds: kinds}, site{schema: branch, kinds: kinds}, at)
		default:
			c.breaksf(ValidationAdded, at, "allOf has a new condition")
		}
	}
	if len(is.AnyOf) > 0 && !anyImplied(was, is.AnyOf, kinds) {
		c.breaksf(ValidationAdded, at, "anyOf accepts fewer values")
	}
	if len(is.OneOf) > 0 && !reflect.DeepEqual(was.OneOf, is.OneOf) {
		c.breaksf(ValidationAdded, at, "oneOf accepts other values")
	}
	if is.Not != nil && (was.Not == nil || !accepts(is.Not, was.Not, kinds)) {
		c.breaksf(ValidationAdded, at, "not rejects more values")
	}
}

// anyImplied reports whether each value that the old schema accepts is accepted by
// one of the branches.
func anyImplied(was *props, branches []props, kinds types) bool {
	meets := func(old props) bool {
		return slices.ContainsFunc(branches, func(branch props) bool { return accepts(&old, &branch, kinds) })
	}
	every := func(olds []props) bool {
		return len(olds) > 0 && !slices.ContainsFunc(olds, func(old props) bool { return !meets(old) })
	}
	return every(was.AnyOf) || every(was.OneOf) || meets(*was)
}

// plain returns the schema without an anyOf that only repeats the types of
// int-or-string. The API server allows this form.
func plain(s *props) *props {
	if !s.XIntOrString {
		return s
	}
	spelled := []props{{Type: "integer"}, {Type: "string"}}
	copied := *s
	if reflect.DeepEqual(copied.AnyOf, spelled) {
		copied.AnyOf = nil
	}
	copied.AllOf = slices.DeleteFunc(slices.Clone(copied.AllOf), func(branch props) bool {
		return reflect.DeepEqual(branch, props{AnyOf: spelled})
	})
	return &copied
}

// rules compares the texts of validation rules in CEL.
func (c *comparer) rules(from, to *props, at string) {
	for _, rule := range to.XValidations {
		known := func(old apiextensionsv1.ValidationRule) bool {
			return old.Rule == rule.Rule && reflect.DeepEqual(old.OptionalOldSelf, rule.OptionalOldSelf)
		}
		if !slices.ContainsFunc(from.XValidations, known) {
			c.breaksf(ValidationAdded, at, "new validation rule: %s", rule.Rule)
		}
	}
}
