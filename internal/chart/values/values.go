package values

import (
	"fmt"
	"math"
)

// FromSpec returns the chart values that a custom resource's spec asks for. The
// result shares nothing with the spec. A spec that is no object is an error.
func FromSpec(object map[string]any) (map[string]any, error) {
	spec, found := object["spec"]
	if !found || spec == nil {
		return map[string]any{}, nil
	}
	values, ok := spec.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("spec: expected an object that holds the chart's values, found %T", spec)
	}
	return Normalize(values), nil
}

// Merge lays overrides over values, key by key in nested objects, and returns
// values. Lists and scalars are replaced whole, as Helm does it.
func Merge(values, overrides map[string]any) map[string]any {
	for key, over := range overrides {
		base, isMap := values[key].(map[string]any)
		overMap, overIsMap := over.(map[string]any)
		switch {
		case isMap && overIsMap:
			values[key] = Merge(base, overMap)
		default:
			values[key] = normalize(over)
		}
	}
	return values
}

// exact is the largest magnitude up to which every whole float64 is exact.
const exact = 1 << 53

// normalize returns a copy in which whole numbers are int64. Templates print a
// large float64 as 1e+06, and a digest must not depend on how JSON was written.
func normalize(value any) any {
	switch v := value.(type) {
	case map[string]any:
		return Normalize(v)
	case []any:
		list := make([]any, len(v))
		for i, inner := range v {
			list[i] = normalize(inner)
		}
		return list
	case float64:
		if v == math.Trunc(v) && math.Abs(v) <= exact {
			return int64(v)
		}
		return v
	case int:
		return int64(v)
	default:
		return v
	}
}

// Normalize returns a copy of values that came from elsewhere, such as a release
// record, with whole numbers as they are in values that came from a spec.
func Normalize(values map[string]any) map[string]any {
	normal := make(map[string]any, len(values))
	for key, value := range values {
		normal[key] = normalize(value)
	}
	return normal
}
