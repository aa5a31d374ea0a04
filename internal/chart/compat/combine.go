package compat

import (
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

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

// anyImplied tells that whatever the old schema takes one of the branches
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
