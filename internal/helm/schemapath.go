package helm

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"helm.sh/helm/v3/pkg/chartutil"
)

// fieldPath writes a path as Kubernetes does: spec.containers[0].name. What is
// an index and what a key only the value tells that was checked.
func fieldPath(at, location []string, checked any) string {
	var path strings.Builder
	path.WriteString(strings.Join(at, "."))
	for _, token := range location {
		if _, isList := checked.([]any); isList {
			fmt.Fprintf(&path, "[%s]", token)
		} else {
			path.WriteString("." + token)
		}
		checked = inside(checked)[token]
	}
	return path.String()
}

// inside returns what a value holds, by the tokens of a location.
func inside(value any) map[string]any {
	switch v := value.(type) {
	case map[string]any:
		return v
	case chartutil.Values:
		return v
	case []any:
		items := make(map[string]any, len(v))
		for i, item := range v {
			items[strconv.Itoa(i)] = item
		}
		return items
	}
	return nil
}

// locationOf returns the location of a key that is refused for its name. Of the
// object that has it the library tells for sure only how deep it is: it goes on
// writing to the location while it looks at what stands beside.
func locationOf(key string, told []string, checked any) []string {
	if found := search(key, len(told), nil, checked); found != nil {
		return found
	}
	return append(slices.Clone(told), key)
}

// search returns the first location of a key in an object of that depth.
func search(key string, depth int, at []string, value any) []string {
	inner := inside(value)
	if depth == 0 {
		if _, isList := value.([]any); isList {
			return nil
		}
		if _, has := inner[key]; has {
			return append(slices.Clone(at), key)
		}
		return nil
	}
	for _, token := range slices.Sorted(maps.Keys(inner)) {
		if found := search(key, depth-1, append(slices.Clone(at), token), inner[token]); found != nil {
			return found
		}
	}
	return nil
}
