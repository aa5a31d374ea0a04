package migrate

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/authoring/preview"
)

// step finds the steps of a path as the API server writes it: spec.list[0].name.
var step = regexp.MustCompile(`[^.\[\]]+`)

// pointerTo turns a path of the API server's into a JSON pointer. A key that has
// a dot in it cannot be told from two.
func pointerTo(path string) string {
	var pointer strings.Builder
	for _, part := range step.FindAllString(path, -1) {
		pointer.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(part))
	}
	return pointer.String()
}

// lookUp returns what is at a JSON pointer.
func lookUp(value any, pointer string) (any, bool) {
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		switch v := value.(type) {
		case map[string]any:
			inner, exists := v[part]
			if !exists {
				return nil, false
			}
			value = inner
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(v) {
				return nil, false
			}
			value = v[i]
		default:
			return nil, false
		}
	}
	return value, true
}

// ofType finds the type that the API server wants.
var ofType = regexp.MustCompile(`must be of type (\w+):`)

// converted returns the value as the type that the API server asks for, where
// nobody can doubt which one that is.
func converted(value any, complaint string) (any, bool) {
	match := ofType.FindStringSubmatch(complaint)
	if match == nil {
		return nil, false
	}
	text, isText := value.(string)
	switch match[1] {
	case "integer":
		n, err := strconv.ParseInt(text, 10, 64)
		return n, isText && err == nil
	case "number":
		n, err := strconv.ParseFloat(text, 64)
		return n, isText && err == nil
	case "boolean":
		return text == "true", isText && (text == "true" || text == "false")
	case "string":
		switch v := value.(type) {
		case int64, float64, bool:
			return fmt.Sprint(v), true
		}
	}
	return nil, false
}

// patchCommand is the command line that changes one field of a custom resource.
func patchCommand(cr *unstructured.Unstructured, admission *preview.Admission, operation map[string]any) string {
	patch, err := json.Marshal([]any{operation})
	if err != nil || !strings.HasPrefix(fmt.Sprint(operation["path"]), "/spec/") {
		return ""
	}
	definition := admission.Definition()
	namespace := ""
	if cr.GetNamespace() != "" {
		namespace = " -n " + cr.GetNamespace()
	}
	return fmt.Sprintf("kubectl patch%s %s.%s %s --type=json -p '%s'\n",
		namespace, definition.Spec.Names.Plural, definition.Spec.Group, cr.GetName(), strings.ReplaceAll(string(patch), "'", `'\''`))
}

// propertyFor is how values.schema.json declares a field.
func propertyFor(path string, value any) string {
	parts := step.FindAllString(path, -1)
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("%q: {%s}", parts[len(parts)-1], typeOf(value))
}

func typeOf(value any) string {
	switch value.(type) {
	case string:
		return `"type": "string"`
	case bool:
		return `"type": "boolean"`
	case int64:
		return `"type": "integer"`
	case float64:
		return `"type": "number"`
	case []any:
		return `"type": "array"`
	case map[string]any:
		return `"type": "object"`
	default:
		return ""
	}
}

// show writes a value as JSON.
func show(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(data)
}
