package compat

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// enum compares the allowed values.
func (c *comparer) enum(from, to site, at string) {
	was, is := canonical(from.schema.Enum), canonical(to.schema.Enum)
	switch {
	case len(is) == 0 && len(was) == 0:
	case len(is) == 0:
		c.notef(Widened, at, "values other than %s are now allowed", strings.Join(was, ", "))
	case len(was) == 0:
		c.breaksf(EnumNarrowed, at, "only %s is allowed", strings.Join(is, ", "))
	default:
		if lost := without(was, is); len(lost) > 0 {
			c.breaksf(EnumNarrowed, at, "%s is no longer allowed", strings.Join(lost, ", "))
		}
		if more := without(is, was); len(more) > 0 {
			c.notef(Widened, at, "%s is now allowed", strings.Join(more, ", "))
		}
	}
}

// without returns the items of a that are not in b.
func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(value string) bool { return slices.Contains(b, value) })
}

// canonical returns the values as JSON, with the same text for equal values.
func canonical(values []apiextensionsv1.JSON) []string {
	spelled := make([]string, len(values))
	for i, value := range values {
		spelled[i] = strings.TrimSpace(string(value.Raw))
		decoder := json.NewDecoder(bytes.NewReader(value.Raw))
		decoder.UseNumber()
		var decoded any
		if decoder.Decode(&decoded) != nil {
			continue
		}
		if data, err := json.Marshal(decoded); err == nil {
			spelled[i] = string(data)
		}
	}
	return spelled
}

// numbers compares limits of numbers, or of integers only if whole is true.
func (c *comparer) numbers(from, to *props, at string, whole bool) {
	c.edge(at, "minimum", bound(from.Minimum, from.ExclusiveMinimum, math.Inf(-1)), bound(to.Minimum, to.ExclusiveMinimum, math.Inf(-1)), 1, whole)
	c.edge(at, "maximum", bound(from.Maximum, from.ExclusiveMaximum, math.Inf(1)), bound(to.Maximum, to.ExclusiveMaximum, math.Inf(1)), -1, whole)
	switch was, is := from.MultipleOf, to.MultipleOf; {
	case is == nil && was != nil:
		c.notef(Widened, at, "no longer has to be a multiple of %s", number(*was))
	case is != nil && !multiples(was, *is):
		c.breaksf(RangeNarrowed, at, "must be a multiple of %s", number(*is))
	}
}

// edge compares limits. The API server mishandles fractional limits: it truncates
// them for integers, so that 1 is not less than 1.5, and it rejects them in the
// schema of an integer.
func (c *comparer) edge(at, what string, was, is edge, sign float64, whole bool) {
	if fraction := is.value != math.Trunc(is.value); fraction && was != is && (whole || is.exclusive && !was.exclusive) {
		c.breaksf(RangeNarrowed, at, "%s changed from %s to %s", what, was, is)
		return
	}
	c.limit(RangeNarrowed, at, what, was, is, sign)
}

// multiples reports whether every multiple of one number is a multiple of the other.
// It is false for fractions: for the API server, no integer is a multiple of 0.5.
func multiples(was *float64, is float64) bool {
	return was != nil && (*was == is || is == math.Trunc(is) && math.Mod(*was, is) == 0)
}

func (c *comparer) texts(from, to *props, at string) {
	c.count(LengthNarrowed, at, "minLength", from.MinLength, to.MinLength, 1)
	c.count(LengthNarrowed, at, "maxLength", from.MaxLength, to.MaxLength, -1)
	switch was, is := from.Pattern, to.Pattern; {
	case was == is:
	case is == "":
		c.notef(Widened, at, "no longer has to match %s", was)
	case was == "":
		c.breaksf(PatternChanged, at, "must match %s", is)
	default:
		c.breaksf(PatternChanged, at, "must match %s instead of %s", is, was)
	}
}

// wider maps formats to formats that accept all of their values.
var wider = map[string]string{"int32": "int64", "float": "double"}

func (c *comparer) format(from, to *props, at string) {
	switch was, is := from.Format, to.Format; {
	case was == is:
	case is == "", is == "password", wider[was] == is:
		c.notef(Widened, at, "format changed from %s to %s", cmp.Or(was, "none"), cmp.Or(is, "none"))
	default:
		c.breaksf(FormatAdded, at, "format changed from %s to %s", cmp.Or(was, "none"), cmp.Or(is, "none"))
	}
}

// edge is one end of a range.
type edge struct {
	value     float64
	exclusive bool
}

// bound returns the edge at a limit, or at the value none if there is no limit.
func bound[N int64 | float64](value *N, exclusive bool, none float64) edge {
	if value == nil {
		return edge{value: none}
	}
	return edge{float64(*value), exclusive}
}

// String formats the edge for users.
func (e edge) String() string {
	switch {
	case math.IsInf(e.value, 0):
		return "none"
	case e.exclusive:
		return number(e.value) + " (exclusive)"
	default:
		return number(e.value)
	}
}

// limit compares edges. The sign is 1 for a lower and -1 for an upper edge.
func (c *comparer) limit(class Class, at, what string, was, is edge, sign float64) {
	switch {
	case was == is:
	case sign*is.value > sign*was.value, is.value == was.value && is.exclusive:
		c.breaksf(class, at, "%s changed from %s to %s", what, was, is)
	default:
		c.notef(Widened, at, "%s changed from %s to %s", what, was, is)
	}
}

// count compares limits of a number of items, keys or characters. A lower limit of 0
// is the same as no limit.
func (c *comparer) count(class Class, at, what string, was, is *int64, sign float64) {
	none := math.Inf(-1)
	if sign > 0 {
		none = 0
	}
	none *= sign
	c.limit(class, at, what, bound(was, false, none), bound(is, false, none), sign)
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
