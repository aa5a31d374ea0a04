package crd

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// scalars converts what a schema says of strings and numbers.
func (c *converter) scalars(n node, kind types, at place, out *apiextensionsv1.JSONSchemaProps) {
	if kind.has("number") {
		c.numbers(n, kind, at, out)
	}
	if kind.has("string") {
		out.MinLength, out.MaxLength = whole(n["minLength"]), whole(n["maxLength"])
		if pattern, ok := n["pattern"].(string); ok {
			if _, err := regexp.Compile(pattern); err == nil {
				out.Pattern = pattern
			} else {
				// Helm's check is written in Go as well.
				c.loseForGood(at, fmt.Sprintf("pattern %s, which RE2 cannot run", pattern))
			}
		}
	}
	if format, ok := n["format"].(string); ok {
		switch {
		case knows(kind, format):
			out.Format = format
		case c.doc.asserts(format):
			c.lose(at, "format "+format)
		default:
			c.loseForGood(at, "format "+format)
		}
	}
}

// numbers converts limits. Fractions among them are the API server's weak side:
// it cuts them off before it compares whole numbers, so that it takes 1 neither
// for less than 1.5 nor for a multiple of 0.5, and where there are whole numbers
// alone it takes none at all.
func (c *converter) numbers(n node, kind types, at place, out *apiextensionsv1.JSONSchemaProps) {
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
			c.lose(at, fmt.Sprintf("%s %s, for whole numbers next to it", edge.keyword, strconv.FormatFloat(*edge.value, 'g', -1, 64)))
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

// stringFormats holds the formats of strings that every API server checks, and
// by the same rules as JSON Schema where that has them, too. A duration is not
// here: it is ISO 8601 there and Go's here.
var stringFormats = []string{
	"bsonobjectid", "byte", "cidr", "creditcard", "date", "date-time", "datetime", "email", "hexcolor", "hostname",
	"ipv4", "ipv6", "isbn", "isbn10", "isbn13", "mac", "password", "rgbcolor", "ssn", "uri", "uuid", "uuid3", "uuid4", "uuid5",
}

// knows tells whether the API server checks a format of values of the type.
func knows(kind types, format string) bool {
	switch {
	case kind.only("string"):
		return slices.Contains(stringFormats, format)
	case kind.only("integer"):
		return format == "int32" || format == "int64"
	case kind.only("number"):
		return format == "float" || format == "double"
	}
	return false
}

// limit returns the narrower of an inclusive and an exclusive limit. The sign
// is 1 for a minimum and -1 for a maximum.
func limit(inclusive, exclusive any, sign float64) (value *float64, isExclusive bool) {
	value, strict := number(inclusive), number(exclusive)
	if strict != nil && (value == nil || sign**strict >= sign**value) {
		return strict, true
	}
	return value, false
}

// number returns a JSON number, nil if it is none.
func number(value any) *float64 {
	n, ok := value.(json.Number)
	if !ok {
		return nil
	}
	f, err := n.Float64()
	if err != nil {
		return nil
	}
	return new(f)
}

// whole returns a JSON number that counts something, nil if it is none.
func whole(value any) *int64 {
	f := number(value)
	if f == nil || *f != math.Trunc(*f) || math.Abs(*f) > math.MaxInt32 {
		return nil
	}
	return new(int64(*f))
}
