package landing

import (
	"encoding/json"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// typeAt returns the type of a field, or nil if the object is not of a kind of Kubernetes or
// has no such field. The path consists of keys (string) and indices of lists (int).
func typeAt(kind schema.GroupVersionKind, path []any) reflect.Type {
	object, err := clientgoscheme.Scheme.New(kind)
	if err != nil {
		return nil
	}
	t := reflect.TypeOf(object).Elem()
	for _, step := range path {
		if reflect.PointerTo(t).Implements(unmarshaler) {
			// The field has a form of its own, such as a quantity.
			return nil
		}
		switch key, isKey := step.(string); {
		case isKey && t.Kind() == reflect.Struct:
			field, ok := fieldOf(t, key)
			if !ok {
				return nil
			}
			t = field.Type
		case isKey && t.Kind() == reflect.Map, !isKey && t.Kind() == reflect.Slice:
			t = t.Elem()
		default:
			return nil
		}
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
	}
	return t
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// fieldOf returns the field of a struct with a name in JSON.
func fieldOf(t reflect.Type, name string) (reflect.StructField, bool) {
	for field := range t.Fields() {
		own, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if own == name && name != "-" {
			return field, true
		}
		if strings.Contains(options, "inline") || field.Anonymous && own == "" {
			if inner, ok := fieldOf(field.Type, name); ok {
				return inner, true
			}
		}
	}
	return reflect.StructField{}, false
}
