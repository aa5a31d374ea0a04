package compat

import (
	"reflect"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

type props = apiextensionsv1.JSONSchemaProps

// site is a schema where it stands.
type site struct {
	schema *props
	// shape tells that the schema says what is kept. Those within allOf, anyOf,
	// oneOf and not only say what is refused.
	shape bool
	// kept tells that something above keeps unknown fields here, too.
	kept bool
	// kinds are the types that a value has here; nil is any.
	kinds types
}

// anything stands for the schema of what nobody speaks of.
func anything() *props { return &props{XPreserveUnknownFields: new(true), Nullable: true} }

// open tells that keys are kept that are not declared.
func (s site) open() bool {
	return s.kept || s.schema.XPreserveUnknownFields != nil && *s.schema.XPreserveUnknownFields
}

// at returns the site of a schema within.
func (s site) at(inner *props) site { return site{schema: inner, shape: s.shape} }

// types returns the types of the values here.
func (s site) types() types { return typesOf(s.schema).intersect(s.kinds) }

// takesNull tells that null is neither refused nor dropped. An enum refuses it
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

// accepts tells that what one schema takes another takes, too. It may say no
// where that is so, and never says yes where it is not.
func accepts(from, to *props, kinds types) bool {
	c := &comparer{}
	c.schema(site{schema: from, kinds: kinds}, site{schema: to, kinds: kinds}, "")
	for _, change := range c.changes {
		if change.Breaking {
			return false
		}
	}
	return true
}

func shown(value *apiextensionsv1.JSON) string {
	if value == nil {
		return "none"
	}
	return string(value.Raw)
}
