package helm

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	helmkube "helm.sh/helm/v3/pkg/kube"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/apply"
)

// textFields are the fields of an object's metadata whose values are texts.
var textFields = []string{"annotations", "labels"}

// writeTexts makes texts of the annotations and labels of an object that are
// written as something else, as Helm does where it looks for hooks: of
// "helm.sh/hook-weight: 5", say. Were one of them left, none could be read.
func writeTexts(object *unstructured.Unstructured) {
	metadata, _ := object.Object["metadata"].(map[string]any)
	for _, field := range textFields {
		values, _ := metadata[field].(map[string]any)
		for key, value := range values {
			if text, ok := textOf(value); ok {
				values[key] = text
			}
		}
	}
}

// textOf returns the text of a value, unless it holds others.
func textOf(value any) (string, bool) {
	switch typed := value.(type) {
	case string:
		return typed, true
	case int64:
		return strconv.FormatInt(typed, 10), true
	case float64:
		return strconv.FormatFloat(typed, 'f', -1, 64), true
	case bool:
		return strconv.FormatBool(typed), true
	case nil:
		return "", true
	}
	return "", false
}

// checkTexts refuses annotations and labels that no text can be made of. All of
// an object's would be lost with them. It is for what was just rendered alone:
// what is stored must still be possible to replace and to delete.
func checkTexts(objects helmkube.ResourceList) error {
	var errs []error
	for _, info := range objects {
		what := apply.Describe(object(info).Unstructured)
		metadata, _ := object(info).Object["metadata"].(map[string]any)
		for _, field := range textFields {
			values, ok := metadata[field].(map[string]any)
			if !ok && metadata[field] != nil {
				errs = append(errs, fmt.Errorf("%s: metadata.%s: expected keys with texts", what, field))
			}
			for _, key := range slices.Sorted(maps.Keys(values)) {
				if _, ok := values[key].(string); !ok {
					errs = append(errs, fmt.Errorf("%s: metadata.%s[%s]: expected a text", what, field, key))
				}
			}
		}
	}
	return errors.Join(errs...)
}
