package watches_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/watches"
)

func TestStatusFields_Rejected(t *testing.T) {
	for _, test := range []refusal{
		{"a built-in field", []string{"status:", "  podNames: '[]'", "  conditions: '[]'"}, []string{`watches.yaml:6: status.conditions: the name is reserved: choose a name other than answered, conditions, `}},
		{"two of them", []string{"status:", "  history: '1'", "  observedGeneration: '2'"}, []string{"watches.yaml:5: status.history: the name is reserved", "watches.yaml:6: status.observedGeneration: the name is reserved"}},
		{"no expression", []string{"status:", "  pods: ''", "  more:"}, []string{"watches.yaml:5: status.pods is empty: expected an expression in CEL", "watches.yaml:6: status.more is empty"}},
		{"no name", []string{"status: {'a b': '1'}"}, []string{`watches.yaml:4: status: "a b" is not a field name: expected letters`}},
		{"a digit in front", []string{"status: {2nd: '1'}"}, []string{`watches.yaml:4: status: "2nd" is not a field name`}},
		{"twice", []string{"status:", "  a: '1'", "  a: '2'"}, []string{`watches.yaml:5: status: yaml: `}},
		{"no map", []string{"status: [a]"}, []string{"watches.yaml:4: status: expected "}},
		{"no text", []string{"status: {a: 1}"}, []string{"watches.yaml:4: status: expected a string, found a number"}},
	} {
		t.Run(test.name, test.run)
	}
}

// TestStatusFields_RejectBuiltInNames goes by what the operator really reports.
func TestStatusFields_RejectBuiltInNames(t *testing.T) {
	names := []string{"resources"}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[api.Status]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
	}
	if len(names) < 8 {
		t.Fatalf("the status has only %v", names)
	}
	for _, name := range names {
		_, err := watches.Parse("watches.yaml", []byte(lines("- {version: v1, kind: A, chart: a, status: {"+name+": '1'}}")))
		if err == nil || !strings.Contains(err.Error(), "status."+name+": the name is reserved") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestObserve_Rejected(t *testing.T) {
	observe := func(fields string) []string { return []string{"maxHistory: 3", "observe: [{" + fields + "}]"} }
	const pods, selector = "name: pods, apiVersion: v1, kind: Pod", "selector: {matchLabels: {app: web}}"
	for _, test := range []refusal{
		{"no name", observe("apiVersion: v1, kind: Pod, " + selector), []string{"watches.yaml:5: observe[0] has no name: add one; expressions refer to it as observed.<name>"}},
		{"a name that is not valid in CEL", observe("name: web-pods, apiVersion: v1, kind: Pod, " + selector), []string{`watches.yaml:5: observe[0].name: "web-pods": expected letters`}},
		{"a name twice", []string{"observe:", "- {" + pods + ", " + selector + "}", "- {" + pods + ", " + selector + "}"}, []string{"watches.yaml:4: observe[1].name: pods is already the name of another entry"}},
		{"no kind", observe("name: pods, apiVersion: v1, " + selector), []string{"watches.yaml:5: observe[0]: expected both apiVersion and kind"}},
		{"no version", observe("name: pods, kind: Pod, " + selector), []string{"watches.yaml:5: observe[0]: expected both apiVersion and kind"}},
		{"no such version", observe("name: pods, apiVersion: a/b/c, kind: Pod, " + selector), []string{"watches.yaml:5: observe[0].apiVersion: unexpected GroupVersion"}},
		{"Secrets", observe("name: all, apiVersion: v1, kind: Secret, " + selector), []string{"watches.yaml:5: observe[0]: Secrets cannot be observed"}},
		{"no selector", observe(pods), []string{"watches.yaml:5: observe[0] has no selector: add labels"}},
		{"no label", observe(pods + ", selector: {matchLabels: {}}"), []string{"watches.yaml:5: observe[0] has no selector"}},
		{"another selector", observe(pods + ", selector: {matchExpressions: []}"), []string{`watches.yaml:5: observe: unknown field "matchExpressions"`}},
		{"an invalid label key", observe(pods + ", selector: {matchLabels: {'a b': web}}"), []string{`watches.yaml:5: observe[0].selector.matchLabels: a b: "web": name part must consist`}},
		{"an invalid label value", observe(pods + ", selector: {matchLabels: {app: 'a b'}}"), []string{`watches.yaml:5: observe[0].selector.matchLabels: app: "a b": a valid label must be`}},
		{"a namespace", observe(pods + ", namespace: kube-system, " + selector), []string{`watches.yaml:5: observe: unknown field "namespace"`}},
	} {
		t.Run(test.name, test.run)
	}
}

func TestPrinterColumns_Rejected(t *testing.T) {
	column := func(fields string) []string { return []string{"additionalPrinterColumns: [{" + fields + "}]"} }
	for _, test := range []refusal{
		{"a column with nothing", column(""), []string{
			"watches.yaml:4: additionalPrinterColumns[0] has no name",
			`watches.yaml:4: additionalPrinterColumns[0].type is "": expected one of boolean, date, integer, number, string`,
			`watches.yaml:4: additionalPrinterColumns[0].jsonPath: "": expected a path such as .status.replicas`,
		}},
		{"a type", column("name: A, type: int, jsonPath: .spec.a"), []string{`watches.yaml:4: additionalPrinterColumns[0].type is "int"`}},
		{"a path", column("name: A, type: string, jsonPath: '.spec[?('"), []string{`watches.yaml:4: additionalPrinterColumns[0].jsonPath: ".spec[?(": `}},
		{"a priority", column("name: A, type: string, jsonPath: .spec.a, priority: -1"), []string{"watches.yaml:4: additionalPrinterColumns[0].priority is -1"}},
		{"another key", column("name: A, type: string, JSONPath: .spec.a, width: 3"), []string{`watches.yaml:4: additionalPrinterColumns: unknown field "width"`}},
		{"a name twice", []string{"additionalPrinterColumns:", "- {name: A, type: string, jsonPath: .spec.a}", "- {name: a, type: string, jsonPath: .spec.b}"}, []string{"watches.yaml:4: additionalPrinterColumns[1].name: a is already the name of another column"}},
		{"a short name", []string{"shortNames: [PS]"}, []string{`watches.yaml:4: shortNames[0]: "PS": want lower-case letters, digits and dashes, starting with a letter`}},
		{"a short name twice", []string{"shortNames: [ps, ps]"}, []string{"watches.yaml:4: shortNames[1]: ps occurs twice"}},
		{"a category", []string{"categories: [all, '']"}, []string{`watches.yaml:4: categories[1]: "": want lower-case letters, digits and dashes, starting with a letter`}},
	} {
		t.Run(test.name, test.run)
	}
}

func TestStatusFieldsAndDisplay(t *testing.T) {
	got, err := watches.Parse("watches.yaml", []byte(lines(
		"- version: v1",
		"  kind: A",
		"  chart: a",
		"  observe:",
		"    - name: pods",
		"      apiVersion: apps/v1",
		"      kind: ReplicaSet",
		`      selector: {matchLabels: {app: web, release: "{{ .release.name }}"}}`,
		"  status:",
		"    count: size(observed.pods)",
		"  additionalPrinterColumns:",
		"    - {name: Pods, type: integer, jsonPath: .status.count, priority: 1}",
		"  shortNames: [as]",
		"  categories: [all]",
	)))
	if err != nil {
		t.Fatal(err)
	}
	w := got[0]
	if gvk := w.Observe[0].GVK(); gvk.Group != "apps" || gvk.Version != "v1" || gvk.Kind != "ReplicaSet" {
		t.Errorf("observes %v", gvk)
	}
	labels := w.Observe[0].Selector.MatchLabels
	if watches.IsTemplate(labels["app"]) || !watches.IsTemplate(labels["release"]) {
		t.Errorf("labels are %v", labels)
	}
	if w.Status["count"] != "size(observed.pods)" || w.AdditionalPrinterColumns[0].Priority != 1 || w.ShortNames[0] != "as" || w.Categories[0] != "all" {
		t.Errorf("%+v", w)
	}
	if text := w.ErrorAt("status.count", "wrong").Error(); text != "watches.yaml:10: wrong" {
		t.Error(text)
	}
}
