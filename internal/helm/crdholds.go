package helm

import (
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// unchangedCRD reports whether a CRD has every field that the chart sets, as the
// chart sets it. Fields that the API server or others have added do not count.
func unchangedCRD(live, wanted *unstructured.Unstructured) bool {
	for _, path := range [][]string{{"spec"}, {"metadata", "labels"}, {"metadata", "annotations"}} {
		is, _, _ := unstructured.NestedFieldNoCopy(live.Object, path...)
		want, _, _ := unstructured.NestedFieldNoCopy(wanted.Object, path...)
		if !holds(is, want) {
			return false
		}
	}
	return true
}

// holds reports whether a value has every field of another. The API server leaves
// out fields that are empty.
func holds(live, wanted any) bool {
	if live == nil {
		return wanted == nil || isEmpty(reflect.ValueOf(wanted))
	}
	switch wanted := wanted.(type) {
	case nil:
		return true
	case map[string]any:
		fields, ok := live.(map[string]any)
		for key, value := range wanted {
			ok = ok && holds(fields[key], value)
		}
		return ok
	case []any:
		items, ok := live.([]any)
		if !ok || len(items) != len(wanted) {
			return false
		}
		for i := range wanted {
			ok = ok && holds(items[i], wanted[i])
		}
		return ok
	}
	// A whole number may be read as an integer or not.
	a, number := asFloat(live)
	b, too := asFloat(wanted)
	if number && too {
		return a == b
	}
	return live == wanted
}

func isEmpty(v reflect.Value) bool {
	if v.Kind() == reflect.Map || v.Kind() == reflect.Slice {
		return v.Len() == 0
	}
	return v.IsZero()
}

func asFloat(value any) (float64, bool) {
	switch number := value.(type) {
	case int64:
		return float64(number), true
	case float64:
		return number, true
	}
	return 0, false
}
