package chart

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/internal/helm/engine"
)

const valuesSchema = `{
  "$schema": "http://json-schema.org/draft-07/schema#",
  "type": "object",
  "required": ["port"],
  "additionalProperties": false,
  "definitions": {"port": {"type": "integer", "minimum": 1}},
  "properties": {
    "port": {"$ref": "#/definitions/port"},
    "global": {"type": "object"},
    "child": {"type": "object"},
    "greeting": {"type": "string"},
    "image": {"type": "object", "properties": {"tag": {"type": "string"}, "pull": {"enum": ["Always", "Never"]}}},
    "containers": {"type": "array", "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "pattern": "^[a-z]+$"}}}},
    "labels": {"propertyNames": {"pattern": "^[a-z]+$"}},
    "ports": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "object", "additionalProperties": {"type": "string"}}}},
    "either": {"oneOf": [{"type": "string"}, {"type": "object", "required": ["x"]}]}
  }
}`

func TestSchema_ReportsInvalidFields(t *testing.T) {
	folder := small().
		with("values.schema.json", valuesSchema).
		with("Chart.yaml", small()["Chart.yaml"]+"dependencies: [{name: child, version: 1.0.0, condition: child.enabled}]\n").
		with("charts/child/Chart.yaml", "apiVersion: v2\nname: child\nversion: 1.0.0\n").
		with("charts/child/values.schema.json", `{"properties": {"size": {"type": "integer"}}}`)
	c := folder.load(t)
	for _, test := range []struct {
		name   string
		values map[string]any
		// want is the message after that of ErrInvalidValues. It is empty if the values
		// are valid.
		want string
	}{
		{"only the required property", map[string]any{"port": int64(80)}, ""},
		{"valid nested values", map[string]any{"port": int64(80), "image": map[string]any{"tag": "1"}, "containers": []any{map[string]any{"name": "a"}}, "either": "x"}, ""},
		{"a missing required property", map[string]any{}, "spec: missing property 'port'"},
		{"a nested type", map[string]any{"port": int64(80), "image": map[string]any{"tag": int64(2)}}, "spec.image.tag: got number, want string"},
		{"an enum", map[string]any{"port": int64(80), "image": map[string]any{"pull": "Sometimes"}}, "spec.image.pull: value must be one of 'Always', 'Never'"},
		{"a $ref within the schema", map[string]any{"port": int64(0)}, "spec.port: minimum: got 0, want 1"},
		{"a fraction", map[string]any{"port": 1.5}, "spec.port: got number, want integer"},
		{"an array index", map[string]any{"port": int64(80), "containers": []any{map[string]any{"name": "a"}, map[string]any{"name": "B"}}}, "spec.containers[1].name: 'B' does not match pattern '^[a-z]+$'"},
		{"a missing required property in an array", map[string]any{"port": int64(80), "containers": []any{map[string]any{}}}, "spec.containers[0]: missing property 'name'"},
		{"a key that does not match", map[string]any{"port": int64(80), "labels": map[string]any{"B": "x"}}, "spec.labels.B: 'B' does not match pattern '^[a-z]+$'"},
		{"a numeric key", map[string]any{"port": int64(80), "ports": map[string]any{"8080": "x"}}, "spec.ports.8080: got string, want array"},
		{"a numeric key in an array below a numeric key", map[string]any{"port": int64(80), "ports": map[string]any{"8080": []any{map[string]any{}, map[string]any{"1": true}}}}, "spec.ports.8080[1].1: got boolean, want string"},
		{"an unknown property", map[string]any{"port": int64(80), "prot": int64(1)}, "spec: additional properties 'prot' not allowed"},
		{"several unknown properties", map[string]any{"port": int64(80), "d": int64(1), "b": int64(1), "e": int64(1), "a": int64(1), "c": int64(1)}, "spec: additional properties 'a', 'b', 'c', 'd', 'e' not allowed"},
		{"several errors", map[string]any{"image": map[string]any{"tag": int64(2)}}, "spec.image.tag: got number, want string; spec: missing property 'port'"},
		{"alternatives", map[string]any{"port": int64(80), "either": map[string]any{}}, "spec.either: got object, want string; spec.either: missing property 'x'"},
		{"a subchart", map[string]any{"port": int64(80), "child": map[string]any{"size": "big"}}, "spec.child.size: got string, want integer"},
		{"a disabled subchart", map[string]any{"port": int64(80), "child": map[string]any{"size": "big", "enabled": false}}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := prepareValues(c, test.values)
			if test.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, ErrInvalidValues) {
				t.Fatalf("got error %v, want ErrInvalidValues", err)
			}
			if got := strings.TrimPrefix(err.Error(), ErrInvalidValues.Error()+": "); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// The schema check accepts the same values as Helm's check.
func TestSchema_AgreesWithHelm(t *testing.T) {
	c := small().with("values.schema.json", valuesSchema).load(t)
	for _, values := range []map[string]any{
		{"port": int64(80)}, {}, {"port": int64(0)}, {"port": "80"}, {"port": 80.0}, {"port": 1.5},
		{"port": int64(1), "either": "x"}, {"port": int64(1), "either": int64(2)}, {"port": int64(1), "greeting": nil},
		{"port": int64(1), "containers": []any{}}, {"port": int64(1), "containers": nil}, {"port": int64(1), "containers": map[string]any{}},
	} {
		_, err := prepareValues(c, values)
		merged, mergeErr := engine.CoalesceValues(clone(c.chart), values)
		if mergeErr != nil {
			t.Fatal(mergeErr)
		}
		helmErr := engine.ValidateAgainstSchema(c.chart, merged)
		if (err == nil) != (helmErr == nil) {
			t.Errorf("%v: got error %v, want Helm's %v", values, err, helmErr)
		}
	}
}

// References to other documents are not followed. The rest of the schema applies.
func TestSchema_OpensReferencesToOtherDocuments(t *testing.T) {
	for _, ref := range []string{
		"file:///etc/hostname", "file:///values.yaml", "http://127.0.0.1:1/schema.json", "https://example.com/schema.json#/definitions/a",
		"https://example.com/schema.json#anchor", "other.json", "urn:example:schema", "urn:example:schema#/a", "//example.com/a", "%zz",
	} {
		schema := `{"properties": {"a": {"$ref": "` + ref + `"}, "b": {"type": "integer"}}}`
		c := small().with("values.schema.json", schema).load(t)
		if _, err := prepareValues(c, map[string]any{"a": "any", "b": int64(1)}); err != nil {
			t.Errorf("$ref to %s: %v", ref, err)
		}
		if _, err := prepareValues(c, map[string]any{"b": "text"}); err == nil {
			t.Errorf("$ref to %s: the rest of the schema accepts a wrong value", ref)
		}
		if want := []Reference{{"values.schema.json", ref}}; !slices.Equal(c.Elsewhere, want) {
			t.Errorf("$ref to %s: got the references %v, want %v", ref, c.Elsewhere, want)
		}
	}
}

// As for Helm, a reference to a missing part of the document is an error.
func TestSchema_RejectsDanglingReferences(t *testing.T) {
	for _, ref := range []string{"#/definitions/none", "#none", "file:///values.schema.json#/definitions/none"} {
		_, err := LoadDir(small().with("values.schema.json", `{"properties": {"a": {"$ref": "`+ref+`"}}}`).fs())
		if err == nil || !strings.Contains(err.Error(), "values.schema.json") || !strings.Contains(err.Error(), "none") {
			t.Errorf("$ref to %s: got error %v, want the reference", ref, err)
		}
	}
}

func TestSchema_AbsentAcceptsAnyValues(t *testing.T) {
	if _, err := prepareValues(small().load(t), map[string]any{"what": []any{"ever"}}); err != nil {
		t.Error(err)
	}
}
