package crd

import (
	"encoding/json"
	"math/big"
	"slices"
	"strings"
)

// kindOf returns the type of value that a keyword speaks of; it does nothing to
// values of others. "number" stands for integers, too. Keywords that speak of
// any value are not here.
var kindOf = map[string]string{
	"minLength": "string", "maxLength": "string", "pattern": "string", "format": "string",
	"contentEncoding": "string", "contentMediaType": "string",
	"minimum": "number", "maximum": "number", "exclusiveMinimum": "number", "exclusiveMaximum": "number", "multipleOf": "number",
	"items": "array", "prefixItems": "array", "additionalItems": "array", "minItems": "array", "maxItems": "array",
	"uniqueItems": "array", "contains": "array", "minContains": "array", "maxContains": "array", "unevaluatedItems": "array",
	"properties": "object", "additionalProperties": "object", "patternProperties": "object", "propertyNames": "object",
	"required": "object", "minProperties": "object", "maxProperties": "object", "dependencies": "object",
	"dependentRequired": "object", "dependentSchemas": "object", "unevaluatedProperties": "object",
}

// types is what is known of the type of a value.
type types struct {
	// names holds the types but null; none, if not known, means any.
	names []string
	known bool
	null  bool
}

func (t types) has(name string) bool {
	return !t.known || slices.Contains(t.names, name) || name == "number" && slices.Contains(t.names, "integer")
}

// only tells that the value has exactly these types, sorted.
func (t types) only(names ...string) bool { return t.known && slices.Equal(t.names, names) }

// told names several types in a sentence; one is told by kubectl explain.
func (t types) told() string {
	if !t.known || len(t.names) < 2 {
		return ""
	}
	last := len(t.names) - 1
	text := strings.Join(t.names[:last], ", ") + " or " + t.names[last] + "."
	return strings.ToUpper(text[:1]) + text[1:]
}

// disjoint tells that no value has a type of both.
func (t types) disjoint(other types) bool {
	if !t.known || !other.known {
		return false
	}
	for _, name := range t.names {
		if slices.Contains(other.names, name) ||
			name == "integer" && slices.Contains(other.names, "number") ||
			name == "number" && slices.Contains(other.names, "integer") {
			return false
		}
	}
	return true
}

// within tells that every value of t's types is of other's types, too.
func (t types) within(other types) bool {
	if !other.known {
		return true
	}
	for _, name := range t.names {
		if !slices.Contains(other.names, name) && (name != "integer" || !slices.Contains(other.names, "number")) {
			return false
		}
	}
	return t.known
}

// typesOf returns the types that the schema names or, where it names none, those
// of its enum.
func typesOf(n node) types {
	if declared, ok := n["type"]; ok {
		return newTypes(typeList(declared))
	}
	values, ok := n["enum"].([]any)
	if !ok {
		return types{null: true}
	}
	names := make([]string, 0, len(values))
	for _, value := range values {
		names = append(names, typeOf(value))
	}
	return newTypes(names)
}

func newTypes(names []string) types {
	t := types{known: true}
	for _, name := range names {
		switch {
		case name == "null":
			t.null = true
		case !slices.Contains(t.names, name):
			t.names = append(t.names, name)
		}
	}
	slices.Sort(t.names)
	if slices.Contains(t.names, "number") {
		t.names = slices.DeleteFunc(t.names, func(name string) bool { return name == "integer" })
	}
	return t
}

func typeList(declared any) []string {
	switch d := declared.(type) {
	case string:
		return []string{d}
	case []any:
		var names []string
		for _, item := range d {
			if name, ok := item.(string); ok {
				names = append(names, name)
			}
		}
		return names
	}
	return nil
}

func typeOf(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case json.Number:
		if r, ok := new(big.Rat).SetString(v.String()); ok && r.IsInt() {
			return "integer"
		}
		return "number"
	default:
		return "object"
	}
}
