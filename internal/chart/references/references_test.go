package references_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright/internal/chart/references"
)

func decode(t *testing.T, text string) any {
	t.Helper()
	var doc any
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestOpen(t *testing.T) {
	for _, test := range []struct {
		name, schema, want string
		opened             []string
	}{
		{name: "pointers and anchors", schema: `{"$ref": "#/$defs/a", "$defs": {"a": {"$anchor": "b", "items": {"$ref": "#b"}}}}`},
		{name: "the document by its name", schema: `{"properties": {"a": {"$ref": "file:///values.schema.json#/properties/b"}, "b": {"$ref": "values.schema.json"}}}`},
		{name: "an embedded schema", schema: `{"$id": "https://example.com/all.json", "properties": {"a": {"$ref": "part.json"}}, "$defs": {"p": {"$id": "part.json"}}}`},
		{name: "the schema of schemas", schema: `{"properties": {"a": {"$ref": "http://json-schema.org/draft-07/schema#"}}}`},
		{name: "a property with the name $ref", schema: `{"properties": {"$ref": {"type": "string"}}, "default": {"$ref": "https://example.com"}}`},
		{name: "not a schema", schema: `["a"]`},
		{
			name:   "other documents",
			schema: `{"properties": {"a": {"$ref": "https://example.com/b.json#/x", "minLength": 2}, "c": {"items": [{"$ref": "d.json"}]}, "e": {"$dynamicRef": "urn:x"}}}`,
			want:   `{"properties": {"a": {"minLength": 2}, "c": {"items": [{}]}, "e": {}}}`,
			opened: []string{"d.json", "https://example.com/b.json#/x", "urn:x"},
		},
		{
			name:   "relative to an address",
			schema: `{"$id": "https://example.com/all.json", "properties": {"a": {"$ref": "b.json"}, "c": {"$ref": "#/properties/a"}}}`,
			want:   `{"$id": "https://example.com/all.json", "properties": {"a": {}, "c": {"$ref": "#/properties/a"}}}`,
			opened: []string{"b.json"},
		},
		{
			name:   "keywords that do not apply before draft 2019-09",
			schema: `{"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "https://example.com", "type": "object", "definitions": {"a": {}}}`,
			want:   `{"definitions": {"a": {}}}`,
			opened: []string{"https://example.com"},
		},
		{
			name:   "a dialect",
			schema: `{"$schema": "https://example.com/dialect", "type": "object"}`,
			want:   `{"type": "object"}`,
			opened: []string{"https://example.com/dialect"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			doc := decode(t, test.schema)
			if diff := cmp.Diff(test.opened, references.Open(doc)); diff != "" {
				t.Errorf("references (-want +got):\n%s", diff)
			}
			if test.want == "" {
				test.want = test.schema
			}
			if diff := cmp.Diff(decode(t, test.want), doc); diff != "" {
				t.Errorf("schema (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSettle(t *testing.T) {
	doc := decode(t, `{"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://example.com/all.json", "properties": {"a": {"$ref": "part.json#/items"}, "b": {"$ref": "#x"}, "c": {"$ref": "other.json"}, "d": {"$ref": "all.json"}},
		"$defs": {"p": {"$id": "part.json", "items": {}}, "x": {"$anchor": "x"}}}`)
	references.Settle(doc)
	want := decode(t, `{"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://example.com/all.json", "properties": {"a": {"$ref": "#/$defs/p/items"}, "b": {"$ref": "#/$defs/x"}, "c": {"$ref": "other.json"}, "d": {"$ref": "#"}},
		"$defs": {"p": {"$id": "part.json", "items": {}}, "x": {"$anchor": "x"}}}`)
	if diff := cmp.Diff(want, doc); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
