package apply

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// ErrNumber marks a number that does not fit into its field.
var ErrNumber = errors.New("number out of range")

// CheckNumbers refuses numbers that do not fit into their field. The API server
// refuses them when an object is created. In an apply it wraps them instead:
// 99999999999 replicas become 1215752191. Kinds that are not built in are left
// to their schema.
func CheckNumbers(object *unstructured.Unstructured) error {
	if !unusual(object.Object) {
		return nil
	}
	known, ok := typeOf(object.GroupVersionKind())
	if !ok {
		return nil
	}
	if err := errors.Join(checkFields(object.Object, known.T, "")...); err != nil {
		return fmt.Errorf("%s: %w", Describe(object), err)
	}
	return nil
}

// unusual reports whether there is a number that some field might not hold.
func unusual(value any) bool {
	switch typed := value.(type) {
	case map[string]any:
		for _, field := range typed {
			if unusual(field) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(typed, unusual)
	case int64:
		return typed > math.MaxInt32 || typed < math.MinInt32
	case float64:
		return true
	}
	return false
}

func checkFields(value any, of reflect.Type, path string) []error {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	var found []error
	switch typed := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(typed)) {
			if inner := fieldType(of, name); inner != nil {
				found = append(found, checkFields(typed[name], inner, join(path, name))...)
			}
		}
	case []any:
		if of.Kind() != reflect.Slice {
			return nil
		}
		for i, item := range typed {
			found = append(found, checkFields(item, of.Elem(), fmt.Sprintf("%s[%d]", path, i))...)
		}
	case int64, float64:
		if err := checkNumber(value, of); err != nil {
			found = append(found, fmt.Errorf("%s: %w", path, err))
		}
	}
	return found
}

// fieldType returns the type of a field of a struct or of a map's values, nil
// where there is none.
func fieldType(of reflect.Type, name string) reflect.Type {
	switch of.Kind() { //nolint:exhaustive // nothing else has fields
	case reflect.Map:
		return of.Elem()
	case reflect.Struct:
		field, _, err := strategicpatch.PatchMetaFromStruct{T: of}.LookupPatchMetadataForStruct(name)
		if typed, ok := field.(strategicpatch.PatchMetaFromStruct); ok && err == nil {
			return typed.T
		}
	}
	return nil
}

// checkNumber refuses a number that a field of the type cannot hold.
func checkNumber(number any, of reflect.Type) error {
	var bits int
	switch {
	case of == reflect.TypeFor[intstr.IntOrString](), of.Kind() == reflect.Int32:
		bits = 32
	case of.Kind() == reflect.Int64:
		bits = 64
	default:
		return nil
	}
	text := fmt.Sprint(number)
	if float, ok := number.(float64); ok {
		text = strconv.FormatFloat(float, 'f', -1, 64)
	}
	if _, err := strconv.ParseInt(text, 10, bits); err != nil {
		limit := int64(math.MaxInt32)
		if bits == 64 {
			limit = math.MaxInt64
		}
		return fmt.Errorf("%w: got %s, want a whole number from %d to %d", ErrNumber, text, -limit-1, limit)
	}
	return nil
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
