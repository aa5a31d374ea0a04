package values

import (
	"maps"
	"strconv"
)

// Retype returns stored values with those that an entry overrides as the entry
// types them, where templates make the same of both. The operator-sdk stores a
// text for each.
func Retype(stored, overrides map[string]any) map[string]any {
	typed := maps.Clone(stored)
	for key, over := range overrides {
		switch was := stored[key].(type) {
		case map[string]any:
			if inner, ok := over.(map[string]any); ok {
				typed[key] = Retype(was, inner)
			}
		case string:
			if Prints(over, was) {
				typed[key] = over
			}
		}
	}
	return typed
}

// Prints tells whether a value of an override means to templates what its text
// did: a number, or what is true. What is false does not, for a text is true to
// a template.
func Prints(value any, text string) bool {
	switch v := value.(type) {
	case int64:
		return text == strconv.FormatInt(v, 10)
	case bool:
		return v && text == "true"
	default:
		return false
	}
}
