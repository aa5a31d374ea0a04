package customresource

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/chart/boundedyaml"
)

// maxStatusField is the size limit in bytes for a field of an oversized status. The
// operator writes at most a few kilobytes.
const maxStatusField = 32 << 10

// packStatus returns the text of a status, "" if it has no field. Of an oversized status it
// returns the fields that the operator writes. It drops a field that is too large, so that
// the operator writes it again.
func packStatus(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) <= len("{}") || raw[0] != '{' {
		return ""
	}
	if len(raw) <= MaxBytes && boundedyaml.JSONValues(raw) <= MaxValues {
		return string(raw)
	}
	kept := map[string]json.RawMessage{}
	for name, value := range fieldsOf(raw, api.JSONNames(reflect.TypeFor[api.Status]())...) {
		switch {
		case len(value) <= maxStatusField:
			kept[name] = value
		case name == "deployedRelease":
			// The operator-sdk stores the manifest there. The operator removes it.
			kept[name] = json.RawMessage(`{"manifest":""}`)
		}
	}
	// Fields that were decoded are encoded without an error.
	text, _ := json.Marshal(kept)
	return string(text)
}

// fieldsOf returns the fields of a JSON object that have one of the names. It does not
// decode the other fields. If the JSON is invalid, it returns the fields before the error.
func fieldsOf(object json.RawMessage, names ...string) map[string]json.RawMessage {
	found := make(map[string]json.RawMessage, len(names))
	var value json.RawMessage
	decoder := json.NewDecoder(bytes.NewReader(object))
	_ = eachField(decoder, func(name string) error {
		if err := decoder.Decode(&value); err != nil {
			return err
		}
		if slices.Contains(names, name) {
			found[name] = bytes.Clone(value)
		}
		return nil
	})
	return found
}

// eachField calls a function for each field of a JSON object. The function decodes
// the value of the field.
func eachField(decoder *json.Decoder, decode func(name string) error) error {
	switch start, err := decoder.Token(); {
	case err != nil:
		return err
	case start != json.Delim('{'):
		return fmt.Errorf("got %v, want an object", start)
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return err
		}
		// The decoder accepts no other keys than strings.
		name, _ := key.(string)
		if err := decode(name); err != nil {
			return err
		}
	}
	_, err := decoder.Token()
	return err
}
