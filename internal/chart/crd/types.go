package crd

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// kindOf maps a keyword to the type of values that it restricts. "number" includes
// integers. Keywords that apply to values of any type are not in the map.
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

// types is the set of types that a value can have.
type types struct {
	// names holds the types without null. If known is false, the value can have any
	// type.
	names []string
	known bool
	null  bool
}

func (t types) has(name string) bool {
	return !t.known || slices.Contains(t.names, name) || name == "number" && slices.Contains(t.names, "integer")
}

// only reports whether the value has exactly these types, sorted.
func (t types) only(names ...string) bool { return t.known && slices.Equal(t.names, names) }

// sentence lists the types for a description. It is empty for a single type, which
// kubectl explain prints.
func (t types) sentence() string {
	if !t.known || len(t.names) < 2 {
		return ""
	}
	last := len(t.names) - 1
	text := strings.Join(t.names[:last], ", ") + " or " + t.names[last] + "."
	return strings.ToUpper(text[:1]) + text[1:]
}

// disjoint reports whether no value has types of both sets.
func (t types) disjoint(other types) bool {
	return t.known && other.known && !slices.ContainsFunc(t.names, other.has) && !slices.ContainsFunc(other.names, t.has)
}

// within reports whether every value of these types is also of the other types.
func (t types) within(other types) bool {
	return !other.known || t.known && !slices.ContainsFunc(t.names, func(name string) bool {
		return !slices.Contains(other.names, name) && (name != "integer" || !slices.Contains(other.names, "number"))
	})
}

// typesOf returns the types that the schema declares or, if it declares none, the types
// of the values in its enum.
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

// scalars converts the keywords for strings and numbers.
func (c *converter) scalars(n node, kind types, at location, out *apiextensionsv1.JSONSchemaProps) {
	if kind.has("number") {
		c.numbers(n, kind, at, out)
	}
	if kind.has("string") {
		out.MinLength, out.MaxLength = whole(n["minLength"]), whole(n["maxLength"])
		if pattern, ok := n["pattern"].(string); ok {
			if _, err := regexp.Compile(pattern); err == nil {
				out.Pattern = pattern
			} else {
				// Helm uses Go's regular expressions, too.
				c.loseForGood(at, fmt.Sprintf("pattern %s, which RE2 does not support", pattern))
			}
		}
	}
	if format, ok := n["format"].(string); ok {
		switch {
		case len(kind.names) == 1 && slices.Contains(formats[kind.names[0]], format):
			out.Format = format
		case c.doc.asserts(format):
			c.lose(at, "format "+format)
		default:
			c.loseForGood(at, "format "+format)
		}
	}
}

// numbers converts limits. The API server mishandles fractional limits: it truncates
// them for integers, so that 1 is neither less than 1.5 nor a multiple of 0.5, and it
// rejects them in the schema of an integer.
func (c *converter) numbers(n node, kind types, at location, out *apiextensionsv1.JSONSchemaProps) {
	out.Minimum, out.ExclusiveMinimum = limit(n["minimum"], n["exclusiveMinimum"], 1)
	out.Maximum, out.ExclusiveMaximum = limit(n["maximum"], n["exclusiveMaximum"], -1)
	for _, edge := range []struct {
		keyword   string
		value     *float64
		exclusive *bool
		round     func(float64) float64
	}{
		{"minimum", out.Minimum, &out.ExclusiveMinimum, math.Ceil},
		{"maximum", out.Maximum, &out.ExclusiveMaximum, math.Floor},
	} {
		if edge.value == nil || *edge.value == math.Trunc(*edge.value) {
			continue
		}
		*edge.exclusive = false
		if !kind.known || slices.Contains(kind.names, "number") {
			c.lose(at, fmt.Sprintf("%s %s, because the API server truncates fractions for integers", edge.keyword, strconv.FormatFloat(*edge.value, 'g', -1, 64)))
		} else {
			*edge.value = edge.round(*edge.value)
		}
	}
	switch factor := number(n["multipleOf"]); {
	case factor == nil:
	case *factor == math.Trunc(*factor):
		out.MultipleOf = factor
	default:
		c.lose(at, "multipleOf a fraction")
	}
}

// formats holds, by type, the formats that every API server checks, by the same
// rules as JSON Schema if that has the format, too. The format duration is missing:
// JSON Schema means ISO 8601 by it, and the API server means Go's durations.
var formats = map[string][]string{
	"string": {
		"bsonobjectid", "byte", "cidr", "creditcard", "date", "date-time", "datetime", "email", "hexcolor", "hostname",
		"ipv4", "ipv6", "isbn", "isbn10", "isbn13", "mac", "password", "rgbcolor", "ssn", "uri", "uuid", "uuid3", "uuid4", "uuid5",
	},
	"integer": {"int32", "int64"},
	"number":  {"float", "double"},
}

// limit returns the narrower of an inclusive and an exclusive limit. The sign is 1 for
// a minimum and -1 for a maximum.
func limit(inclusive, exclusive any, sign float64) (value *float64, isExclusive bool) {
	value, strict := number(inclusive), number(exclusive)
	if strict != nil && (value == nil || sign**strict >= sign**value) {
		return strict, true
	}
	return value, false
}

// number returns the value of a JSON number, and nil for any other value.
func number(value any) *float64 {
	n, ok := value.(json.Number)
	if !ok {
		return nil
	}
	if f, err := n.Float64(); err == nil {
		return &f
	}
	return nil
}

// whole returns the value of a JSON number that is an integer of at most 32 bits, and
// nil for any other value.
func whole(value any) *int64 {
	f := number(value)
	if f == nil || *f != math.Trunc(*f) || math.Abs(*f) > math.MaxInt32 {
		return nil
	}
	return new(int64(*f))
}
