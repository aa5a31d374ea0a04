package compat

import (
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

type props = apiextensionsv1.JSONSchemaProps

// site is a schema and what the schemas around it say.
type site struct {
	schema *props
	// shape: the schema says what is kept. Those within allOf, anyOf,
	// oneOf and not only say what is refused.
	shape bool
	// kept: something above keeps unknown fields here, too.
	kept bool
	// kinds are the types that a value has here; nil is any.
	kinds types
}

// anything returns the schema of a value that no schema describes.
func anything() *props { return &props{XPreserveUnknownFields: new(true), Nullable: true} }

// open reports whether keys are kept that are not declared.
func (s site) open() bool {
	return s.kept || s.schema.XPreserveUnknownFields != nil && *s.schema.XPreserveUnknownFields
}

// at returns the site of a schema within.
func (s site) at(inner *props) site { return site{schema: inner, shape: s.shape} }

// types returns the types of the values here.
func (s site) types() types { return typesOf(s.schema).intersect(s.kinds) }

// takesNull reports whether null is neither refused nor dropped. An enum refuses it
// even where it lists it.
func (s site) takesNull() bool { return s.schema.Nullable && len(s.schema.Enum) == 0 }

// schema compares what two schemas say of one value.
func (c *comparer) schema(from, to site, at string) {
	was, is := from.types(), to.types()
	if !was.within(typesOf(to.schema)) {
		c.breaksf(TypeChanged, at, "type %s becomes %s", was, is)
		return
	}
	if from.shape && !is.within(was) {
		c.notef(Widened, at, "type %s becomes %s", was, is)
	}
	before := len(c.changes)
	c.enum(from, to, at)
	if enumUnchanged := len(c.changes) == before; from.shape && enumUnchanged && from.takesNull() && !to.takesNull() {
		c.breaksf(NullableRemoved, at, "null was possible")
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
		c.notef(DefaultChanged, at, "default %s becomes %s", shown(from.schema.Default), shown(to.schema.Default))
	}
}

// accepts reports whether what one schema takes another takes, too. It may say no
// where that is so, and never says yes where it is not.
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

// types are the types of a value but null, sorted; nil is any.
type types []string

// typesOf returns the types that a schema takes.
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

// within reports whether every value of t's types is of other's types, too.
func (t types) within(other types) bool {
	return other == nil || t != nil && !slices.ContainsFunc(t, func(name string) bool {
		return !other.has(name) && (name != "integer" || !other.has("number"))
	})
}

// intersect returns the narrower of two, one of which is any or within the
// other.
func (t types) intersect(other types) types {
	if t == nil || other.within(t) && other != nil {
		return other
	}
	return t
}

// String names the types for people.
func (t types) String() string {
	if t == nil {
		return "any"
	}
	return strings.Join(t, " or ")
}

// combined compares conditions. One that is new is harmless if all that was
// taken before meets it.
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
		c.breaksf(ValidationAdded, at, "anyOf takes less")
	}
	if len(is.OneOf) > 0 && !reflect.DeepEqual(was.OneOf, is.OneOf) {
		c.breaksf(ValidationAdded, at, "oneOf takes something else")
	}
	if is.Not != nil && (was.Not == nil || !accepts(is.Not, was.Not, kinds)) {
		c.breaksf(ValidationAdded, at, "not refuses more")
	}
}

// anyImplied reports whether whatever the old schema takes one of the branches
// takes.
func anyImplied(was *props, branches []props, kinds types) bool {
	meets := func(old props) bool {
		return slices.ContainsFunc(branches, func(branch props) bool { return accepts(&old, &branch, kinds) })
	}
	every := func(olds []props) bool {
		return len(olds) > 0 && !slices.ContainsFunc(olds, func(old props) bool { return !meets(old) })
	}
	return every(was.AnyOf) || every(was.OneOf) || meets(*was)
}

// plain returns the schema without the anyOf that merely spells out
// int-or-string, as the API server lets it.
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

// rules compares rules in CEL, by their text.
func (c *comparer) rules(from, to *props, at string) {
	for _, rule := range to.XValidations {
		known := func(old apiextensionsv1.ValidationRule) bool {
			return old.Rule == rule.Rule && reflect.DeepEqual(old.OptionalOldSelf, rule.OptionalOldSelf)
		}
		if !slices.ContainsFunc(from.XValidations, known) {
			c.breaksf(ValidationAdded, at, "there is a new rule: %s", rule.Rule)
		}
	}
}
