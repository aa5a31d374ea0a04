package crd

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// maxDefault is the length up to which a default is worth telling.
const maxDefault = 80

// describe returns the text of a field: its description, or its title; then of
// what types it may be, where it is not of a single one, for kubectl explain
// calls all of those objects; and the chart's default where the author has not
// spoken of it.
func describe(n node, kinds string, at place) string {
	text, _ := n["description"].(string)
	if text == "" {
		text, _ = n["title"].(string)
	}
	text = strings.TrimSpace(text)
	shown := showDefault(at)
	if isTrue(n["writeOnly"]) || n["format"] == "password" || secret.MatchString(at.path) || strings.Contains(strings.ToLower(text+kinds), "default") {
		shown = ""
	}
	var sentences []string
	if text != "" {
		sentences = append(sentences, text)
	}
	if kinds != "" {
		sentences = append(sentences, kinds)
	}
	if shown != "" {
		sentences = append(sentences, fmt.Sprintf("Default: %s.", shown))
	}
	if len(sentences) > 1 {
		sentences[0] = sentence(sentences[0])
	}
	return strings.Join(sentences, " ")
}

// secret is the path of a value that nobody should read.
var secret = regexp.MustCompile(`(?i)(passw(or)?d|passphrase|token|(secret|api|private|access)[-_]?key|credentials?|\.secret)$`)

// showDefault returns a default as one would write it in YAML, empty if there
// is none to speak of: what is empty says little, and objects are told key by
// key.
func showDefault(at place) string {
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
