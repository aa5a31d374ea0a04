package chart

import (
	"errors"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
)

const rules = `{
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

func TestSchema(t *testing.T) {
	folder := small().
		with("values.schema.json", rules).
		with("Chart.yaml", small()["Chart.yaml"]+"dependencies: [{name: child, version: 1.0.0, condition: child.enabled}]\n").
		with("charts/child/Chart.yaml", "apiVersion: v2\nname: child\nversion: 1.0.0\n").
		with("charts/child/values.schema.json", `{"properties": {"size": {"type": "integer"}}}`)
	c := folder.load(t)
	for _, test := range []struct {
		name   string
		values map[string]any
		// want is the message after that of ErrInvalidValues, empty for none.
		want string
	}{
		{"good", map[string]any{"port": int64(80)}, ""},
		{"everything", map[string]any{"port": int64(80), "image": map[string]any{"tag": "1"}, "containers": []any{map[string]any{"name": "a"}}, "either": "x"}, ""},
		{"required", map[string]any{}, "spec: missing property 'port'"},
		{"a nested type", map[string]any{"port": int64(80), "image": map[string]any{"tag": int64(2)}}, "spec.image.tag: got number, want string"},
		{"an enum", map[string]any{"port": int64(80), "image": map[string]any{"pull": "Sometimes"}}, "spec.image.pull: value must be one of 'Always', 'Never'"},
		{"a $ref within the schema", map[string]any{"port": int64(0)}, "spec.port: minimum: got 0, want 1"},
		{"a fraction", map[string]any{"port": 1.5}, "spec.port: got number, want integer"},
		{"an array index", map[string]any{"port": int64(80), "containers": []any{map[string]any{"name": "a"}, map[string]any{"name": "B"}}}, "spec.containers[1].name: 'B' does not match pattern '^[a-z]+$'"},
		{"required in an array", map[string]any{"port": int64(80), "containers": []any{map[string]any{}}}, "spec.containers[0]: missing property 'name'"},
		{"a key that is refused", map[string]any{"port": int64(80), "labels": map[string]any{"B": "x"}}, "spec.labels.B: 'B' does not match pattern '^[a-z]+$'"},
		{"a key of digits", map[string]any{"port": int64(80), "ports": map[string]any{"8080": "x"}}, "spec.ports.8080: got string, want array"},
		{"a key of digits in an array of one", map[string]any{"port": int64(80), "ports": map[string]any{"8080": []any{map[string]any{}, map[string]any{"1": true}}}}, "spec.ports.8080[1].1: got boolean, want string"},
		{"additionalProperties", map[string]any{"port": int64(80), "prot": int64(1)}, "spec: additional properties 'prot' not allowed"},
		{"several that are not known", map[string]any{"port": int64(80), "d": int64(1), "b": int64(1), "e": int64(1), "a": int64(1), "c": int64(1)}, "spec: additional properties 'a', 'b', 'c', 'd', 'e' not allowed"},
		{"several at once", map[string]any{"image": map[string]any{"tag": int64(2)}}, "spec.image.tag: got number, want string; spec: missing property 'port'"},
		{"alternatives", map[string]any{"port": int64(80), "either": map[string]any{}}, "spec.either: got object, want string; spec.either: missing property 'x'"},
		{"a subchart", map[string]any{"port": int64(80), "child": map[string]any{"size": "big"}}, "spec.child.size: got string, want integer"},
		{"a subchart that is off", map[string]any{"port": int64(80), "child": map[string]any{"size": "big", "enabled": false}}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := prepared(c, test.values)
			if test.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, ErrInvalidValues) {
				t.Fatalf("error %v, want ErrInvalidValues", err)
			}
			if got := strings.TrimPrefix(err.Error(), ErrInvalidValues.Error()+": "); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// The schema check accepts the same values as Helm's check.
func TestSchemaAgreesWithHelm(t *testing.T) {
	c := small().with("values.schema.json", rules).load(t)
	for _, values := range []map[string]any{
		{"port": int64(80)}, {}, {"port": int64(0)}, {"port": "80"}, {"port": 80.0}, {"port": 1.5},
		{"port": int64(1), "either": "x"}, {"port": int64(1), "either": int64(2)}, {"port": int64(1), "greeting": nil},
		{"port": int64(1), "containers": []any{}}, {"port": int64(1), "containers": nil}, {"port": int64(1), "containers": map[string]any{}},
	} {
		_, ours := prepared(c, values)
		merged, err := chartutil.CoalesceValues(clone(c.chart), values)
		if err != nil {
			t.Fatal(err)
		}
		theirs := chartutil.ValidateAgainstSchema(c.chart, merged)
		if (ours == nil) != (theirs == nil) {
			t.Errorf("%v: we say %v, Helm says %v", values, ours, theirs)
		}
	}
}

func TestSchemaReadsNothingElse(t *testing.T) {
	for _, ref := range []string{"file:///etc/hostname", "http://127.0.0.1:1/schema.json", "https://example.com/schema.json", "other.json"} {
		_, err := LoadDir(small().with("values.schema.json", `{"properties": {"a": {"$ref": "`+ref+`"}}}`).fs())
		if err == nil || !strings.Contains(err.Error(), "want a reference within the schema") {
			t.Errorf("$ref to %s: %v", ref, err)
		}
	}
}

func TestNoSchemaTakesAnything(t *testing.T) {
	if _, err := prepared(small().load(t), map[string]any{"what": []any{"ever"}}); err != nil {
		t.Error(err)
	}
}
