package crd

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chartwright/chartwright/internal/watches"
)

// multiplied returns a schema whose references multiply fields: levels of 8 references each, and 40
// described fields below. Each level also has a condition about the fields below it.
func multiplied(levels, described int) string {
	var text strings.Builder
	text.WriteString(`{"additionalProperties": false, "properties": {"a": {"$ref": "#/definitions/level0"}}, "definitions": {`)
	for level := range levels {
		fmt.Fprintf(&text, `"level%d": {"type": "object", "description": "Level %d", "anyOf": [{"properties": {"f0": {"required": ["f1"]}}}, {"required": ["f2"]}], "properties": {`, level, level)
		for i := range 8 {
			fmt.Fprintf(&text, `"f%d": {"$ref": "#/definitions/level%d"},`, i, level+1)
		}
		text.WriteString(`"last": {"type": "string"}}},`)
	}
	fmt.Fprintf(&text, `"level%d": {"additionalProperties": false, "properties": {`, levels)
	for i := range 40 {
		fmt.Fprintf(&text, `"leaf%d": {"type": "integer", "description": %q},`, i, strings.Repeat("Why. ", described))
	}
	text.WriteString(`"f1": {"type": "string"}}}}}`)
	return text.String()
}

func TestFit_DescriptionsGoFirst(t *testing.T) {
	for name, test := range map[string]struct {
		schema          string
		versions        int
		described, open bool
	}{
		"small":             {multiplied(1, 1), 1, true, false},
		"long descriptions": {multiplied(2, 200), 1, false, false},
		"many fields":       {multiplied(2, 1), 9, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			of := kind(t, map[string]string{"Chart.yaml": "apiVersion: v2\nname: box\nversion: 1.0.0", "values.schema.json": test.schema})
			for i := range test.versions {
				of.Versions = append(of.Versions, watches.CRDVersion{Name: fmt.Sprintf("v%d", i+1), Storage: i == 0})
			}
			definition, warnings, err := Generate(of)
			if err != nil {
				t.Fatal(err)
			}
			data, err := json.Marshal(definition)
			if err != nil || len(data) > maxCRD+1<<16 {
				t.Errorf("the CRD has %d bytes, %v", len(data), err)
			}
			described, open := false, false
			every(definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"], "spec", func(_ string, s apiextensionsv1.JSONSchemaProps) {
				described = described || strings.HasPrefix(s.Description, "Why")
			})
			for _, warning := range warnings {
				open = open || strings.Contains(warning.Lost, "too large")
			}
			if described != test.described || open != test.open {
				t.Errorf("described: %v, want %v; open: %v, want %v", described, test.described, open, test.open)
			}
		})
	}
}

// A condition about a field of an open part would make the schema invalid.
func TestFit_LeavesOutConditionsAboutOpenParts(t *testing.T) {
	word := apiextensionsv1.JSONSchemaProps{Type: "string"}
	spec := object("", props{"a": object("", props{"b": object("", props{"c": word, "d": word})})})
	spec.AllOf = []apiextensionsv1.JSONSchemaProps{{Properties: props{"a": {Properties: props{"b": {Properties: props{"c": {MinLength: new(int64(1))}}}}}}}}
	warnings := fit(&spec, 150)
	if len(warnings) != 1 || warnings[0].Path != "spec.a.b" {
		t.Errorf("open parts: %v, want spec.a.b", warnings)
	}
	root := object("", props{"spec": spec})
	if err := validate(&root); err != nil {
		t.Error(err)
	}
}

// testFit installs CRDs that were too large: the API server accepts them, and what is left open.
func testFit(t *testing.T, c client.Client) {
	of := kind(t, map[string]string{"Chart.yaml": "apiVersion: v2\nname: box\nversion: 1.0.0", "values.schema.json": multiplied(2, 1)})
	for i := range 9 {
		of.Versions = append(of.Versions, watches.CRDVersion{Name: fmt.Sprintf("v%d", i+1), Storage: i == 0})
	}
	of.Kind = "Large"
	definition, warnings, err := Generate(of)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(warnings, func(w Warning) bool { return strings.Contains(w.Lost, "too large") })
	if i < 0 {
		t.Fatalf("nothing is open: %v", warnings)
	}
	install(t, c, definition)
	var below any = "text"
	for _, key := range slices.Backward(strings.Split(warnings[i].Path, ".")[1:]) {
		below = map[string]any{key: below}
	}
	roundTrip(t, c, definition, "a value in the open part", below.(map[string]any))
	rejected(t, c, definition, "a value above it", map[string]any{"a": "text"})
}
