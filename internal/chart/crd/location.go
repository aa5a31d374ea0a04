package crd

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// location is the path and default of the values that a schema describes.
type location struct {
	path string
	// value is the chart's default at this location, or nil.
	value any
	// assumed is true if value is merged from the defaults of all entries of a map.
	assumed bool
	// refs holds the references that are inlined in the schemas above this location,
	// including those of all schemas that were merged.
	refs []string
}

// inlining returns the location with more inlined references.
func (l location) inlining(refs []string) location {
	l.refs = union(l.refs, refs)
	return l
}

// child returns the location of a key.
func (l location) child(key string) location {
	l.path += "." + key
	defaults, _ := l.value.(map[string]any)
	l.value = defaults[key]
	return l
}

// entry returns the location of any entry of a map. Its value merges the defaults of all
// entries, because Helm merges the default of the same key into an entry.
func (l location) entry() location {
	defaults, _ := l.value.(map[string]any)
	merged := map[string]any{}
	for _, value := range defaults {
		if entry, ok := value.(map[string]any); ok {
			overlay(merged, entry)
		}
	}
	l.path += ".*"
	l.value, l.assumed = nil, true
	if len(merged) > 0 {
		l.value = merged
	}
	return l
}

// overlay merges from into a map, at any depth.
func overlay(into, from map[string]any) {
	for key, value := range from {
		old, isMap := into[key].(map[string]any)
		if inner, ok := value.(map[string]any); ok {
			fresh := map[string]any{}
			if isMap {
				overlay(fresh, old)
			}
			overlay(fresh, inner)
			value = fresh
		}
		if value != nil || into[key] == nil {
			into[key] = value
		}
	}
}

// item returns the location of any item of a list. It has no default, because Helm
// replaces lists as a whole.
func (l location) item() location {
	l.path += "[*]"
	l.value = nil
	return l
}

// maxDefault is the maximum length of a default in a description.
const maxDefault = 80

// describe returns the description of a field: its description or title, the types if
// there are several, because kubectl explain prints Object for these, and the chart's
// default, unless the description mentions a default.
func describe(n node, kinds string, at location) string {
	text, _ := n["description"].(string)
	if text == "" {
		text, _ = n["title"].(string)
	}
	text = strings.TrimSpace(text)
	shown := showDefault(at)
	if shown != "" {
		shown = fmt.Sprintf("Default: %s.", shown)
	}
	if isTrue(n["writeOnly"]) || n["format"] == "password" || secret.MatchString(at.path) || strings.Contains(strings.ToLower(text+kinds), "default") {
		shown = ""
	}
	sentences := slices.DeleteFunc([]string{text, kinds, shown}, func(s string) bool { return s == "" })
	if len(sentences) > 1 {
		sentences[0] = sentence(sentences[0])
	}
	return strings.Join(sentences, " ")
}

// secret matches the paths of values that descriptions must not contain.
var secret = regexp.MustCompile(`(?i)(passw(or)?d|passphrase|token|(secret|api|private|access)[-_]?key|credentials?|\.secret)$`)

// showDefault returns a default in YAML. It is empty if the default is long or empty,
// or is an object, whose keys have descriptions of their own.
func showDefault(at location) string {
	if at.assumed {
		return ""
	}
	switch value := at.value.(type) {
	case nil, map[string]any:
		return ""
	case string:
		if value == "" || len(value) > maxDefault || strings.ContainsAny(value, "\n\r") {
			return ""
		}
		return value
	case []any:
		if len(value) == 0 {
			return ""
		}
	}
	data, err := json.Marshal(at.value)
	if err != nil || len(data) > maxDefault {
		return ""
	}
	return string(data)
}
