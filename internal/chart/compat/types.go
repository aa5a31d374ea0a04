package compat

import (
	"slices"
	"strings"
)

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

// within tells that every value of t's types is of other's types, too.
func (t types) within(other types) bool {
	if other == nil {
		return true
	}
	if t == nil {
		return false
	}
	for _, name := range t {
		if !other.has(name) && (name != "integer" || !other.has("number")) {
			return false
		}
	}
	return true
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
