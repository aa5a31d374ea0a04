package customresource

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/chart/boundedyaml"
)

// maxStatusField is the size in bytes of the largest field of a status that is
// too large. The operator writes a few kilobytes at most.
const maxStatusField = 32 << 10

// packStatus returns the text of a status, "" if it holds no field. Of a status
// that exceeds a limit it returns the fields that the operator writes; a field
// that is too large even so counts as absent, and the operator writes it anew.
func packStatus(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) <= len("{}") || raw[0] != '{' {
		return ""
	}
	if len(raw) <= MaxBytes && boundedyaml.JSONValues(raw) <= MaxValues {
		return string(raw)
	}
	kept := map[string]json.RawMessage{}
	for name, value := range fieldsOf(raw, statusNames()...) {
		switch {
		case len(value) <= maxStatusField:
			kept[name] = value
		case name == "deployedRelease":
			// The operator-sdk keeps the manifest there, which the operator removes.
			kept[name] = json.RawMessage(`{"manifest":""}`)
		}
	}
	// Fields that were decoded are encoded without an error.
	text, _ := json.Marshal(kept)
	return string(text)
}

// statusNames returns the names of the status fields that the operator writes.
func statusNames() []string {
	known := reflect.TypeFor[api.Status]()
	names := make([]string, known.NumField())
	for i := range names {
		names[i], _, _ = strings.Cut(known.Field(i).Tag.Get("json"), ",")
	}
	return names
}

// fieldsOf returns those fields of a JSON object that have one of the names,
// without decoding the others.
func fieldsOf(object json.RawMessage, names ...string) map[string]json.RawMessage {
	found := make(map[string]json.RawMessage, len(names))
	decoder := json.NewDecoder(bytes.NewReader(object))
	if start, err := decoder.Token(); err != nil || start != json.Delim('{') {
		return nil
	}
	var skipped json.RawMessage
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return found
		}
		name, _ := key.(string)
		if err := decoder.Decode(&skipped); err != nil {
			return found
		}
		if slices.Contains(names, name) {
			found[name] = bytes.Clone(skipped)
		}
	}
	return found
}
