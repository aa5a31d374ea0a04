package apply

import (
	"regexp"
	"strings"
)

// Helm creates and patches objects, and the API server then drops each null of
// a custom resource for which the schema does not allow it. It refuses the same
// null in an apply. Whether a null is allowed is the API server's to say: no
// schema is read, and what it does not refuse is sent as it is.

// listIndex is the place of a list item in a path of a refusal.
var listIndex = regexp.MustCompile(`\[\d+\]`)

// dropNulls removes the nulls that a refusal names, and reports whether there
// were any. The schema is the same for all items of a list, so where one of
// them is refused, the field goes from all.
func dropNulls(object map[string]any, refusal error) bool {
	dropped := false
	for _, cause := range causesOf(refusal) {
		if cause.Field == "" || !strings.Contains(cause.Message, "null") {
			continue
		}
		path := strings.Split(listIndex.ReplaceAllString(cause.Field, ".[]"), ".")
		dropped = dropNull(object, path) || dropped
	}
	return dropped
}

// dropNull removes the null that a path leads to. Keys of a map may hold dots,
// so that a key is whatever leads on.
func dropNull(value any, path []string) bool {
	dropped := false
	switch typed := value.(type) {
	case []any:
		if path[0] != "[]" || len(path) == 1 {
			return false
		}
		for _, item := range typed {
			dropped = dropNull(item, path[1:]) || dropped
		}
	case map[string]any:
		for length := 1; length <= len(path); length++ {
			key := strings.Join(path[:length], ".")
			inner, ok := typed[key]
			switch {
			case !ok:
			case length < len(path):
				dropped = dropNull(inner, path[length:]) || dropped
			case inner == nil:
				delete(typed, key)
				dropped = true
			}
		}
	}
	return dropped
}
