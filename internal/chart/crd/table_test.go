package crd

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/chart/values"
)

// construct is an entry of testdata/constructs.yaml: a construct of JSON Schema at
// spec.v, and its conversion.
type construct struct {
	Name string `json:"name"`
	// Draft is the draft of the schema, the newest if 0.
	Draft       int             `json:"draft,omitempty"`
	Schema      json.RawMessage `json:"schema"`
	Definitions json.RawMessage `json:"definitions,omitempty"`
	// Root holds more keywords of the document.
	Root map[string]json.RawMessage `json:"root,omitempty"`
	// Defaults is the chart's default of v.
	Defaults json.RawMessage `json:"defaults,omitempty"`
	// NoHelm marks schemas that Helm cannot compile.
	NoHelm bool `json:"nohelm,omitempty"`
	// Want is the converted schema of spec.v. Lost are the keywords that only Helm
	// checks, and Gone those that neither Helm nor the API server checks.
	Want json.RawMessage `json:"want"`
	Lost []string        `json:"lost,omitempty"`
	Gone []string        `json:"gone,omitempty"`
	// Valid and Invalid are values on which Helm and the API server must agree.
	Valid   []json.RawMessage `json:"valid,omitempty"`
	Invalid []json.RawMessage `json:"invalid,omitempty"`
}

func constructs(t *testing.T) []construct {
	t.Helper()
	data, err := os.ReadFile("testdata/constructs.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all []construct
	if err := yaml.UnmarshalStrict(data, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// document returns a values.schema.json that contains the construct.
func (c construct) document(t *testing.T) []byte {
	t.Helper()
	draft := map[int]string{
		0:    "https://json-schema.org/draft/2020-12/schema",
		2019: "https://json-schema.org/draft/2019-09/schema",
		4:    "http://json-schema.org/draft-04/schema#",
		6:    "http://json-schema.org/draft-06/schema#",
		7:    "http://json-schema.org/draft-07/schema#",
	}[c.Draft]
	document := map[string]any{
		"$schema": draft, "type": "object", "additionalProperties": false,
		"properties": map[string]any{"v": c.Schema},
	}
	if c.Definitions != nil {
		document["definitions"] = c.Definitions
	}
	for keyword, value := range c.Root {
		document[keyword] = value
	}
	data, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func (c construct) defaults(t *testing.T) map[string]any {
	t.Helper()
	if c.Defaults == nil {
		return map[string]any{}
	}
	return map[string]any{"v": decode(t, c.Defaults)}
}

func (c construct) convert(t *testing.T) (apiextensionsv1.JSONSchemaProps, []Warning) {
	t.Helper()
	spec, warnings, err := convertSpec(c.document(t), c.defaults(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	return spec, warnings
}

// validator returns a function that validates values as Helm does: it merges the value with
// the defaults, and removes defaults that the value sets to null.
func (c construct) validator(t *testing.T) func(value json.RawMessage) error {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(c.document(t)))
	if err != nil {
		t.Fatal(err)
	}
	if err := compiler.AddResource("values.schema.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return func(value json.RawMessage) error {
		defaults := c.defaults(t)
		spec := map[string]any{"v": decode(t, value)}
		merged := values.Merge(c.defaults(t), spec)
		return schema.Validate(withoutNulls(merged, defaults))
	}
}

// withoutNulls removes null values of keys that have a default.
func withoutNulls(vals, defaults map[string]any) map[string]any {
	for key, value := range vals {
		old, has := defaults[key]
		if value == nil && has && old != nil {
			delete(vals, key)
		}
		inner, isMap := value.(map[string]any)
		if under, ok := old.(map[string]any); ok && isMap {
			withoutNulls(inner, under)
		}
	}
	return vals
}

func decode(t *testing.T, raw json.RawMessage) any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		t.Fatal(err)
	}
	return plain(value)
}

// plain converts numbers to int64 or float64, as the API machinery requires.
func plain(value any) any {
	switch v := value.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		f, _ := v.Float64()
		return f
	case map[string]any:
		for key, inner := range v {
			v[key] = plain(inner)
		}
	case []any:
		for i, inner := range v {
			v[i] = plain(inner)
		}
	}
	return value
}
