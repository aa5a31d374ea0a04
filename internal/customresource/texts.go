package customresource

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Texts returns what the author of a custom resource has written: its name, the keys and the
// values of its spec and its annotations, and the lines of the values. Of a spec that cannot
// be expanded, it returns nothing.
func Texts(cr *unstructured.Unstructured) []string {
	texts := []string{cr.GetName(), cr.GetNamespace()}
	for key, value := range cr.GetAnnotations() {
		texts = append(append(texts, key), textsIn(value)...)
	}
	object, err := Expand(cr)
	if err != nil {
		return texts
	}
	return append(texts, textsIn(object["spec"])...)
}

func textsIn(written any) (texts []string) {
	switch v := written.(type) {
	case map[string]any:
		for key, value := range v {
			texts = append(append(texts, key), textsIn(value)...)
		}
	case []any:
		for _, value := range v {
			texts = append(texts, textsIn(value)...)
		}
	default:
		text := fmt.Sprint(v)
		texts = append(strings.Split(text, "\n"), text)
	}
	return texts
}
