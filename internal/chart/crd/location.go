package crd

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// location is where in the values a schema applies.
type location struct {
	path string
	// value is the chart's default there, nil if there is none.
	value any
	// assumed: value stands for the defaults of all entries of a map.
	assumed bool
	// refs holds the references that are inlined in what holds this location. Of
	// schemas that have become one it has those of all, so that not each of them
	// need lead here.
	refs []string
}

// inlining returns the location within what more references lead to.
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

// entry returns the location of any entry of a map. As defaults are merged with
// entries of the same key, what any default has may be there.
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

// overlay adds what from has, in nested maps, too.
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

// item returns the location of any item of a list. Lists are replaced whole, so
// there are no defaults in them.
func (l location) item() location {
	l.path += "[*]"
	l.value = nil
	return l
}

// maxDefault is the length up to which a default is worth telling.
const maxDefault = 80

// describe returns the text of a field: its description, or its title; then of
// what types it may be, where it is not of a single one, for kubectl explain
// calls all of those objects; and the chart's default where the author has not
// spoken of it.
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

// secret is the path of a value that is not shown.
var secret = regexp.MustCompile(`(?i)(passw(or)?d|passphrase|token|(secret|api|private|access)[-_]?key|credentials?|\.secret)$`)

// showDefault returns a default as one would write it in YAML, empty if there
// is none to speak of: what is empty says little, and objects are told key by
// key.
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
