package crd

import (
	"encoding/json"
	"reflect"
	"testing"
)

// FuzzConvert checks that each values.schema.json, with any default values, results in
// an error or in a schema that the API server accepts, and that the conversion is
// deterministic.
func FuzzConvert(f *testing.F) {
	f.Add(`{"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"type": ["string", "null"]}}}`, `{"a": "b"}`)
	f.Add(`{"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}`, `{}`)
	f.Add(`{"allOf": [{"anyOf": [true, false]}, {"not": {}}], "additionalProperties": false}`, `{"a": {"b": []}}`)
	f.Fuzz(func(t *testing.T, schema, defaults string) {
		var values map[string]any
		if json.Unmarshal([]byte(defaults), &values) != nil {
			return
		}
		spec, warnings, err := convertSpec([]byte(schema), values, nil)
		again, warningsAgain, errAgain := convertSpec([]byte(schema), values, nil)
		if (err == nil) != (errAgain == nil) || !reflect.DeepEqual(spec, again) || !reflect.DeepEqual(warnings, warningsAgain) {
			t.Fatalf("two conversions differ:\n%+v %v\n%+v %v", spec, err, again, errAgain)
		}
		if err != nil {
			return
		}
		root := object("", props{"spec": spec})
		if err := validate(&root); err != nil {
			t.Fatalf("the schema is not structural: %v", err)
		}
	})
}
