package lint

import (
	"encoding/json"
	"strings"
)

// settled knows which values are set in every release.
type settled struct {
	// chart are the chart's defaults, and required what its schema demands.
	chart    map[string]any
	required map[string]bool
}

// has tells whether a value, by its path below .Values, is set wherever a file
// of the chart or of a subchart is rendered: it has a default that is not
// empty, or the schema requires it.
func (s settled) has(file, path string) bool {
	var prefix []string
	for i, part := range strings.Split(chartOf(file), "/") {
		if i%2 == 1 {
			prefix = append(prefix, part)
		}
	}
	keys := append(prefix, strings.Split(path, ".")...) //nolint:gocritic // prefix is not used again
	return s.required[strings.Join(keys, ".")] || !empty(at(s.chart, keys))
}

// at returns the value at a path, nil where there is none.
func at(values map[string]any, keys []string) any {
	var value any = values
	for _, key := range keys {
		inner, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = inner[key]
	}
	return value
}

// empty is what templates take for it.
func empty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case bool:
		return !v
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	case float64:
		return v == 0
	case int64:
		return v == 0
	default:
		return false
	}
}

// requiredValues returns the paths that a schema requires, as far as it says so
// plainly: by required beside properties, at every level above, too.
func requiredValues(schema []byte) map[string]bool {
	found := map[string]bool{}
	var root map[string]any
	if json.Unmarshal(schema, &root) == nil {
		require(root, "", found)
	}
	return found
}

func require(schema map[string]any, prefix string, found map[string]bool) {
	required, _ := schema["required"].([]any)
	properties, _ := schema["properties"].(map[string]any)
	for _, item := range required {
		key, ok := item.(string)
		if !ok {
			continue
		}
		found[prefix+key] = true
		if inner, ok := properties[key].(map[string]any); ok {
			require(inner, prefix+key+".", found)
		}
	}
}
