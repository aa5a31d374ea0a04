package crd

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chartwright/chartwright/internal/catalog"
)

// boxWith returns a kind with more keys in its watches entry.
func boxWith(t *testing.T, more string) catalog.Kind {
	t.Helper()
	kinds, err := catalog.FromFS(fstest.MapFS{
		"watches.yaml":   {Data: []byte("- {group: example.com, version: v1, kind: Own, chart: box, " + more + "}")},
		"box/Chart.yaml": {Data: []byte("apiVersion: v2\nname: box\nversion: 1.0.0")},
	}, "watches.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return kinds[0]
}

// everyShape has a status field of each type, names and columns.
const everyShape = `
  observe: [{name: pods, apiVersion: v1, kind: Pod, selector: {matchLabels: {app: web}}}],
  status: {
    text: release.name, count: size(observed.pods), ratio: '1.5', flag: release.revision > 1,
    names: "observed.pods.map(p, string(p.metadata.name))", table: "{'a': 1}", nested: "[{'a': ['b']}]",
    anything: values.a, open: "[values.a]", at: timestamp('2026-01-01T00:00:00Z')
  },
  additionalPrinterColumns: [
    {name: Count, type: integer, jsonPath: .status.count, format: int32, description: How many.},
    {name: age, type: date, jsonPath: .metadata.creationTimestamp, priority: 2}
  ],
  shortNames: [ow], categories: [all, boxes]`

func TestStatus_HasFieldsOfKind(t *testing.T) {
	definition := generate(t, boxWith(t, everyShape))
	fields := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Properties
	for name, want := range map[string]string{
		"text": "string", "count": "integer int64", "ratio": "number", "flag": "boolean", "names": "array of string",
		"table": "object of integer int64", "nested": "array of object of array of string",
		"anything": "open", "open": "array of open", "at": "string date-time", "state": "string",
	} {
		if got := typeName(fields[name]); got != want {
			t.Errorf("%s: got type %s, want %s", name, got, want)
		}
	}
	if want := "Computed by the expression: size(observed.pods)"; fields["count"].Description != want {
		t.Errorf("got description %q, want %q", fields["count"].Description, want)
	}
}

// typeName describes the type of a schema.
func typeName(s apiextensionsv1.JSONSchemaProps) string {
	name := strings.TrimSpace(s.Type + " " + s.Format)
	switch {
	case name == "" && s.XPreserveUnknownFields != nil:
		return "open"
	case s.Items != nil:
		return name + " of " + typeName(*s.Items.Schema)
	case s.AdditionalProperties != nil:
		return name + " of " + typeName(*s.AdditionalProperties.Schema)
	}
	return name
}

func TestColumns_OfKindPrecedeUsualOnes(t *testing.T) {
	definition := generate(t, boxWith(t, everyShape))
	columns := definition.Spec.Versions[0].AdditionalPrinterColumns
	shown := make([]string, len(columns))
	for i, c := range columns {
		shown[i] = fmt.Sprint(c.Name, " ", c.Priority)
	}
	if got := strings.Join(shown, ", "); got != "Count 0, age 2, Ready 1, Status 1, Revision 1, Chart 1, Message 1" {
		t.Error(got)
	}
	if c := columns[0]; c.Type != "integer" || c.Format != "int32" || c.JSONPath != ".status.count" || c.Description != "How many." {
		t.Errorf("got column %+v", c)
	}
	names := definition.Spec.Names
	if !slices.Equal(names.ShortNames, []string{"ow"}) || !slices.Equal(names.Categories, []string{"all", "boxes", "chartwright"}) {
		t.Errorf("got names %+v", names)
	}
	if got := len(usual()); got != 6 || usual()[0].Priority != 0 {
		t.Errorf("usual() returns modified columns: %v", usual())
	}
}

func TestScale_RejectsWrongTypes(t *testing.T) {
	const scale = "subresources: {scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas, labelSelectorPath: .status.selector}}, "
	for fields, want := range map[string]string{
		"{replicas: size(resources), selector: \"'app=' + release.name\"}": "",
		"{replicas: values.a, selector: values.b}":                         "",
		"{other: '1'}":                 "",
		"{replicas: release.name}":     "Own: subresources.scale.statusReplicasPath: field .status.replicas has type string, want integer",
		"{selector: '[release.name]'}": "Own: subresources.scale.labelSelectorPath: field .status.selector has type array, want string",
	} {
		_, _, err := Generate(boxWith(t, scale+"status: "+fields))
		if got := fmt.Sprint(err); err == nil && want != "" || err != nil && got != want {
			t.Errorf("%s: got error %v, want %s", fields, err, want)
		}
	}
}

// testOwnFields writes the results of expressions into the status.
func testOwnFields(t *testing.T, c client.Client) {
	definition := generate(t, boxWith(t, everyShape))
	install(t, c, definition)
	cr := resource(definition, nil)
	if err := c.Create(t.Context(), cr); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"text": "web", "count": int64(2), "ratio": 1.5, "flag": true, "names": []any{"a", "b"},
		"table": map[string]any{"b": int64(1)}, "nested": []any{map[string]any{"c": []any{"d"}}},
		"anything": map[string]any{"e": []any{int64(1), "f"}}, "open": []any{"g", int64(2)}, "at": "2026-01-01T00:00:00Z",
	}
	for _, status := range []map[string]any{want, {"anything": int64(1), "names": []any{}, "ratio": int64(2)}} {
		cr.Object["status"] = runtime.DeepCopyJSON(status)
		if err := c.Status().Update(t.Context(), cr); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(cr.Object["status"], any(status)) {
			t.Errorf("got status\n%v\nwant\n%v", cr.Object["status"], status)
		}
	}
}

func TestStatus_HasOutputs(t *testing.T) {
	const written = "outputs: [{name: host, value: release.name}, {name: port, value: '5432'}, {name: password, value: objects.Secret.a.data.b}]"
	fields := generate(t, boxWith(t, written)).Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Properties
	outputs := fields["outputs"].Properties
	if typeName(outputs["host"]) != "string" || typeName(outputs["port"]) != "integer int64" || len(outputs) != 2 {
		t.Errorf("the outputs are %v", outputs)
	}
	if want := "Computed by the expression: release.name"; outputs["host"].Description != want {
		t.Errorf("got description %q, want %q", outputs["host"].Description, want)
	}
	if fields := generate(t, boxWith(t, "timeout: 1m")).Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Properties; typeName(fields["outputsSecret"]) != "" {
		t.Error("a kind without outputs has status.outputsSecret")
	}
}
