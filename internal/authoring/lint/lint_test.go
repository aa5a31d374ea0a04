package lint_test

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright"
	"github.com/chartwright/chartwright/internal/authoring/lint"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
)

// files are the files of a chart. They override those of clean, a chart without
// findings.
type files map[string]string

var clean = files{
	"Chart.yaml":         "apiVersion: v2\nname: box\nversion: 1.0.0\n",
	"values.yaml":        "size: 1\nname: \"\"\n",
	"values.schema.json": "{\n\"type\": \"object\", \"additionalProperties\": false,\n\"properties\": {\n\"global\": {},\n\"size\": {\"type\": \"integer\"},\n\"name\": {\"type\": \"string\"}\n}}",
	"templates/a.yaml":   object("v1", "ConfigMap", "{{ .Release.Name }}"),
}

// object returns an object with its name on line 4.
func object(apiVersion, kind, name string, more ...string) string {
	text := fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata:\n  name: %s\n", apiVersion, kind, name)
	return text + strings.Join(append(more, ""), "\n")
}

// annotated returns an object with annotations, and its name on line 4.
func annotated(kind, name string, annotations ...string) string {
	return object("v1", kind, name, append([]string{"  annotations:"}, annotations...)...)
}

func load(t *testing.T, changed files) *chart.Chart {
	t.Helper()
	all := maps.Clone(clean)
	maps.Copy(all, changed)
	fsys := fstest.MapFS{}
	for name, text := range all {
		if text != "" {
			fsys[name] = &fstest.MapFile{Data: []byte(text)}
		}
	}
	loaded, err := chart.LoadDir(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// run returns the findings as "severity rule file:line".
func run(t *testing.T, target lint.Target) []string {
	t.Helper()
	findings, err := lint.Run(target, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range findings {
		t.Logf("%s:%d: %s: %s [%s]", f.File, f.Line, f.Severity, f.Message, f.Rule)
		file := strings.TrimPrefix(f.File, target.Path+"/")
		if f.Line > 0 {
			file = fmt.Sprintf("%s:%d", file, f.Line)
		}
		got = append(got, fmt.Sprintf("%s %s %s", f.Severity, f.Rule, file))
		if f.Message == "" || f.Why == "" || f.Fix == "" {
			t.Errorf("%s has no message, reason or fix: %+v", f.Rule, f)
		}
		if strings.Contains(f.Message, "a7x") || strings.Contains(f.Message, "b3y") {
			t.Errorf("%q names a release of the trials", f.Message)
		}
	}
	return got
}

// hazards are charts with one problem each, and the expected findings.
var hazards = []struct {
	name  string
	files files
	want  []string
}{
	{"no problem", nil, nil},
	{"a template that only checks", files{"templates/b.yaml": "{{ if gt (int .Values.size) 5 }}{{ fail \"too large\" }}{{ end }}\n{{ include \"check\" . }}", "templates/_c.tpl": "{{ define \"check\" }}{{ if not .Values.size }}{{ fail (printf \"no %s\" \"size\") }}{{ end }}{{ end }}"}, nil},

	{"notes that require a password", files{
		"templates/NOTES.txt": `{{ $e := dict "valueKey" "name" }}{{ if and .Release.IsUpgrade (not .Values.name) }}{{ fail "PASSWORDS ERROR" }}{{ end }}`,
	}, []string{"warning upgrade-needs-password templates/NOTES.txt:1"}},
	{"an appVersion that is a number", files{"Chart.yaml": "apiVersion: v2\nname: box\nversion: 1.0.0\nappVersion: 1.5\n"}, []string{"error helm Chart.yaml"}},
	{"a template that fails", files{"templates/b.yaml": "a: 1\n\nb: {{ .Values.name | b64dec | toYaml | fromYaml | index 1 }}\n"}, []string{"error helm templates/b.yaml:3", "warning not-rendered values.yaml"}},
	{"required values without defaults", files{
		"values.schema.json": `{"type": "object", "required": ["size", "name"]}`, "values.yaml": "size: 1\n",
	}, []string{"warning not-rendered values.yaml"}},
	{"required values without defaults, and a fixed name", files{
		"values.schema.json": `{"type": "object", "required": ["size", "name"]}`, "values.yaml": "size: 1\n", "templates/b.yaml": object("v1", "Service", "box"),
	}, []string{"error name-ignores-release templates/b.yaml:4", "warning not-rendered values.yaml"}},
	{"required values in an example", files{
		"values.schema.json": `{"type": "object", "required": ["size", "name"]}`, "values.yaml": "size: 1\n", "ci/a-values.yaml": "name: a\n",
	}, nil},
	{"an example that the schema rejects", files{"ci/a-values.yaml": "size: much\n"}, []string{"error example-refused ci/a-values.yaml"}},
	{"an example that is not YAML", files{"ci/a-values.yaml": "size: [\n"}, []string{"error example-refused ci/a-values.yaml"}},
	{"an example that does not render", files{"templates/a.yaml": object("v1", "ConfigMap", "{{ if gt (int .Values.size) 5 }}{{ fail \"too large\" }}{{ end }}{{ .Release.Name }}"), "ci/a-values.yaml": "size: 6\n"}, []string{"error helm ci/a-values.yaml"}},

	{"no schema", files{"values.schema.json": ""}, []string{"warning schema-missing Chart.yaml"}},
	{"a schema that a CRD cannot express", files{
		"values.schema.json": "{\n\"type\": \"object\",\n\"$defs\": {\"d\": {\"properties\": {\n\"b\": {\"type\": \"object\",\n\"if\": {\"required\": [\"x\"]}, \"then\": {\"required\": [\"y\"]}}}}},\n\"properties\": {\n\"a\": {\"$ref\": \"#/$defs/d\"},\n\"l\": {\"type\": \"array\", \"items\": {\n\"type\": \"object\",\n\"contentEncoding\": \"x\", \"propertyNames\": {}}}\n}}",
	}, []string{"info schema-not-expressible values.schema.json:10", "info schema-not-expressible values.schema.json:5"}},
	{"a schema that refers to other documents", files{
		"values.schema.json": "{\n\"properties\": {\n\"a\": {\"$ref\": \"https://example.com/a.json\"}},\n\"if\": {\n\"$ref\": \"b.json\"}}",
	}, []string{"info schema-not-expressible values.schema.json:4", "warning schema-not-expressible values.schema.json:3", "warning schema-not-expressible values.schema.json:5"}},

	{"a number in the wrong format", files{"templates/b.yaml": object("v1", "ConfigMap", "{{ .Release.Name }}-b", "data:", "  a: 'at {{ printf \"%d\" .Values.size }}'", "  b: '{{ printf \"%s %v\" .Values.name .Values.size 1 }}'")}, []string{
		"error format-error templates/b.yaml:4", "warning number-type templates/b.yaml:4",
	}},
	{"a large number", files{"values.yaml": "size: 5000000\nname: \"\"\n", "templates/b.yaml": object("v1", "ConfigMap", "{{ .Release.Name }}-b", "data:", "  a: x={{ .Values.size }}", "  c: id-1e+06b")}, []string{
		"warning number-format templates/b.yaml:4", "warning number-type templates/b.yaml:4",
	}},
	{"a large number in an example", files{"ci/a-values.yaml": "size: 5000000\n", "templates/b.yaml": object("v1", "ConfigMap", "{{ .Release.Name }}-b", "data:", "  a: x={{ .Values.size }}", "  b: x={{ int .Values.size }}")}, []string{"warning number-format templates/b.yaml:4"}},
	{"a large number in a field of its type", files{"values.yaml": "size: 5000000\nname: \"\"\n", "templates/b.yaml": object("v1", "Service", "{{ .Release.Name }}-b", "spec:", "  x: {{ .Values.size }}")}, nil},
	{"a number that a float64 cannot represent", files{"values.yaml": "size: 1\nname: \"\"\nids: [{id: 9007199254740993}]\n", "values.schema.json": `{"type": "object"}`}, []string{"warning number-format values.yaml"}},
	{"a comparison that needs a float64", files{"templates/b.yaml": object("v1", "ConfigMap", "{{ .Release.Name }}-b", "data:", "  a: '{{ gt .Values.size 5.0 }}'")}, []string{"warning number-type values.yaml"}},
	{"a comparison for each type", files{"templates/b.yaml": object("v1", "ConfigMap", "{{ .Release.Name }}-b", "data:", "  a: '{{ gt (int .Values.size) 5 }}'", "  r: {{ uuidv4 }}")}, []string{"warning random-value templates/b.yaml:7"}},

	{"a loop without separator", files{"templates/b.yaml": "{{- range list .Values.name }}\n" + object("v1", "ConfigMap", "{{ $.Release.Name }}-{{ . }}c") + "{{- end }}\n"}, []string{"error no-separator templates/b.yaml:1"}},
	{"a loop with separator", files{"templates/b.yaml": "{{- range list 1 2 }}\n---\n" + object("v1", "ConfigMap", "{{ $.Release.Name }}-{{ . }}") + "{{- end }}\n"}, nil},
	{"a loop in an object", files{"templates/b.yaml": object("v1", "ConfigMap", "{{ .Release.Name }}-b", "data:") + "{{- range list 1 2 }}\n  a{{ . }}: |\n    apiVersion:\n{{- end }}\n"}, nil},
	{"an object that is rendered twice", files{"templates/b.yaml": object("v1", "ConfigMap", "{{ .Release.Name }}-b") + "---\n" + object("v1", "ConfigMap", "{{ .Release.Name }}-b")}, []string{"error object-identity templates/b.yaml:9"}},
	{"two kinds with one name", files{"templates/b.yaml": object("v1", "ConfigMap", "{{ .Release.Name }}-b") + "---\n" + object("v1", "Secret", "{{ .Release.Name }}-b")}, nil},
	{"an object without name", files{"templates/b.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  generateName: {{ .Release.Name }}-\n"}, []string{"error object-identity templates/b.yaml:2", "warning helm templates/b.yaml"}},

	{"a random value", files{"templates/b.yaml": object("v1", "Secret", "{{ .Release.Name }}", "stringData:", "  password: {{ randAlphaNum 10 }}")}, []string{"warning random-value templates/b.yaml:6"}},
	{"the time", files{"templates/b.yaml": object("v1", "Secret", "{{ .Release.Name }}", "stringData:", "  at: {{ now | date \"2006\" | quote }}")}, []string{"warning time-dependent templates/b.yaml:6"}},
	{"the revision", files{"templates/b.yaml": annotated("ConfigMap", "{{ .Release.Name }}-b", "    at: {{ .Release.Revision | quote }}")}, []string{"warning release-revision templates/b.yaml:6"}},
	{"the revision, in a range", files{"templates/b.yaml": "{{ range $i := list 1 }}\n{{ $.Release.Revision }}: 1\n{{ end }}"}, []string{"warning helm templates/b.yaml", "warning release-revision templates/b.yaml:2"}},
	{"the phase", files{"templates/b.yaml": "{{ if .Release.IsInstall }}\n" + object("v1", "ConfigMap", "{{ .Release.Name }}-b") + "{{ else if and .Values.name\n $.Release.IsUpgrade }}{{ end }}"}, []string{"warning release-phase templates/b.yaml:1", "warning release-phase templates/b.yaml:7"}},

	{"a lookup", files{"templates/b.yaml": `{{ $a := lookup "v1" "Secret" .Release.Namespace "x" }}`}, []string{"info lookup templates/b.yaml:1"}},
	{"a lookup with a namespace from a helper", files{
		"templates/_h.tpl": "{{ define \"ns\" }}{{ .Values.name | default .Release.Namespace }}{{ end }}\n",
		"templates/b.yaml": `{{ $a := lookup "v1" "Secret" (include "ns" .) "x" }}`,
	}, []string{"info lookup templates/b.yaml:1"}},
	{"a lookup in another namespace", files{"templates/b.yaml": `{{ $a := lookup "v1" "Secret" "kube-system" "x" }}` + "\n" + `{{ $b := lookup "v1" "Node" "" "" }}` + "\n" + `{{ $c := lookup "v1" "Secret" .Values.name "x" }}`}, []string{
		"info lookup templates/b.yaml:1", "warning lookup-elsewhere templates/b.yaml:1",
		"info lookup templates/b.yaml:2", "warning lookup-elsewhere templates/b.yaml:2",
		"info lookup templates/b.yaml:3", "warning lookup-elsewhere templates/b.yaml:3",
	}},

	{"a missing file", files{
		".helmignore": "b.txt\n", "a.txt": "a", "b.txt": "b",
		"templates/b.yaml": object("v1", "ConfigMap", "{{ .Release.Name }}-b", "data:", `  a: {{ .Files.Get "a.txt" | quote }}`, `  b: {{ .Files.Get "b.txt" | quote }}`),
	}, []string{"warning missing-file templates/b.yaml:7"}},

	{"a missing file of a subchart", files{
		"values.schema.json": "{}",
		"Chart.yaml":         "apiVersion: v2\nname: box\nversion: 1.0.0\ndependencies: [{name: sub, version: 1.0.0}]\n",
		"b.txt":              "b", "charts/sub/a.txt": "a", "charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n",
		"charts/sub/templates/b.yaml": object("v1", "ConfigMap", "{{ .Release.Name }}-b", "data:", `  a: {{ .Files.Get "a.txt" | quote }}`, `  b: {{ .Files.Get "b.txt" | quote }}`),
	}, []string{"warning missing-file charts/sub/templates/b.yaml:7"}},

	{"a fixed name", files{"templates/a.yaml": object("v1", "ConfigMap", "{{ .Release.Name }}") + "---\n" + object("v1", "ConfigMap", "box")}, []string{"error name-ignores-release templates/a.yaml:9"}},
	{"a fixed name after an object that is not rendered", files{"templates/b.yaml": "{{ if .Values.name }}\n" + object("v1", "Service", "{{ .Release.Name }}") + "{{ else }}\n" + object("v1", "Service", "box") + "{{ end }}"}, []string{"error name-ignores-release templates/b.yaml:10"}},
	{"a name with only the namespace", files{"templates/b.yaml": object("v1", "Service", "{{ .Release.Namespace }}")}, []string{"error name-ignores-release templates/b.yaml:4"}},
	{"a fixed name of an object that the defaults disable", files{"values.yaml": "enabled: false\n", "values.schema.json": `{"properties": {"enabled": {"type": "boolean"}}}`, "templates/b.yaml": "{{ if .Values.enabled }}\n" + object("v1", "Service", "box") + "{{ end }}"}, []string{"error name-ignores-release templates/b.yaml:5"}},
	{"a cluster-scoped object with a fixed name", files{"templates/b.yaml": object("scheduling.k8s.io/v1", "PriorityClass", "box", "value: 1")}, []string{"error cluster-name-shared templates/b.yaml:4", "info not-allowed templates/b.yaml:4"}},
	{"an object in a fixed namespace", files{"templates/b.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: box, namespace: kube-system}\n"}, []string{"error cluster-name-shared templates/b.yaml:3", "info not-allowed templates/b.yaml:3"}},
	{"a cluster-scoped object with the release's name", files{"templates/b.yaml": object("scheduling.k8s.io/v1", "PriorityClass", "{{ .Release.Name }}", "value: 1")}, []string{"info not-allowed templates/b.yaml:4", "warning cluster-name-ignores-namespace templates/b.yaml:4"}},
	{"a cluster-scoped object with namespace and name of the release", files{"templates/b.yaml": object("scheduling.k8s.io/v1", "PriorityClass", "{{ .Release.Namespace }}-{{ .Release.Name }}", "value: 1")}, []string{"info not-allowed templates/b.yaml:4"}},
	{"a cluster-scoped kind of the chart's own", files{
		"crds/a.yaml":      "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: as.example.com}\nspec: {group: example.com, scope: Cluster, names: {kind: A, plural: as}}\n",
		"templates/b.yaml": object("example.com/v1", "A", "box"),
	}, []string{"error cluster-name-shared templates/b.yaml:4", "info not-allowed templates/b.yaml:4"}},

	{"a CRD without keep policy", files{"templates/b.yaml": crdObject("")}, []string{"error crd-without-keep templates/b.yaml:3", "info not-allowed templates/b.yaml:3"}},
	{"a CRD with keep policy", files{"templates/b.yaml": crdObject(", annotations: {helm.sh/resource-policy: keep}")}, []string{"error cluster-name-shared templates/b.yaml:3", "info not-allowed templates/b.yaml:3"}},

	{"a large release", files{"values.yaml": "", "values.schema.json": "{}", "templates/b.yaml": noise(900)}, []string{"warning release-size Chart.yaml"}},
	{"a release that exceeds the limit", files{"values.yaml": "", "values.schema.json": "{}", "templates/b.yaml": noise(1700)}, []string{"error release-size Chart.yaml"}},
	{"a release of moderate size", files{"values.yaml": "", "values.schema.json": "{}", "templates/b.yaml": noise(600)}, nil},

	{"a hook without a policy", files{"templates/b.yaml": annotated("Pod", "{{ .Release.Name }}-b", "    helm.sh/hook: pre-install")}, []string{"warning hook-delete-policy templates/b.yaml:4"}},
	{"a hook that remains if it fails", files{"templates/b.yaml": annotated("Pod", "{{ .Release.Name }}-b", "    helm.sh/hook: pre-install", "    helm.sh/hook-delete-policy: hook-succeeded,hook-failed")}, []string{"warning hook-left-behind templates/b.yaml:4"}},
	{"a hook with before-hook-creation", files{"templates/b.yaml": annotated("Pod", "{{ .Release.Name }}-b", "    helm.sh/hook: pre-install", "    helm.sh/hook-delete-policy: before-hook-creation")}, nil},
	{"a delete hook", files{"templates/b.yaml": annotated("Pod", "{{ .Release.Name }}-b", "    helm.sh/hook: pre-delete", "    helm.sh/hook-delete-policy: before-hook-creation")}, []string{"info delete-hook templates/b.yaml:4"}},
	{"a hook with a fixed name", files{"templates/b.yaml": annotated("Pod", "box", "    helm.sh/hook: pre-install", "    helm.sh/hook-delete-policy: before-hook-creation")}, []string{"error name-ignores-release templates/b.yaml:4"}},
	{"hooks in a loop", files{"templates/b.yaml": "{{ range list 1 2 }}\n---\n" + strings.ReplaceAll(annotated("Pod", "{{ $.Release.Name }}-{{ . }}", "    helm.sh/hook: pre-install"), "NAME", "") + "{{ end }}"}, []string{"warning hook-delete-policy templates/b.yaml:6"}},

	{"a kind that cannot be determined", files{"templates/b.yaml": "{{ if .Values.name }}\napiVersion: v1\nkind: {{ .Values.name }}\nmetadata: {name: {{ .Release.Name }}}\n{{ end }}"}, []string{"warning permissions-unresolved templates/b.yaml:3"}},

	{"an unknown rule", files{
		"Chart.yaml":       "apiVersion: v2\nname: box\nversion: 1.0.0\nannotations:\n  chartwright.dev/lint-ignore: no-such\n",
		"templates/a.yaml": "{{/* chartwright:ignore nor-such because */}}\n" + object("v1", "ConfigMap", "{{ .Release.Name }}"),
	}, []string{"warning unknown-rule Chart.yaml:5", "warning unknown-rule templates/a.yaml:1"}},
}

func crdObject(more string) string {
	return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: as.example.com" + more + "}\nspec: {group: example.com, scope: Cluster, names: {kind: A, plural: as}, versions: []}\n"
}

// noise returns a ConfigMap with data that cannot be compressed.
func noise(kib int) string {
	var text strings.Builder
	seed := uint64(1)
	for text.Len() < kib<<10 {
		// A generator of pseudo-random numbers (xorshift).
		seed ^= seed << 13
		seed ^= seed >> 7
		seed ^= seed << 17
		fmt.Fprintf(&text, "%016x", seed)
	}
	return object("v1", "ConfigMap", "{{ .Release.Name }}-b", "data:", "  noise: "+text.String())
}

func TestLint_FindsHazards(t *testing.T) {
	for _, test := range hazards {
		t.Run(test.name, func(t *testing.T) {
			got := run(t, lint.Standalone("charts/box", load(t, test.files)))
			if diff := cmp.Diff(slices.Sorted(slices.Values(test.want)), slices.Sorted(slices.Values(got))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestLint_HazardsCoverEveryRule excludes rules that need a watches entry, see
// TestLint_ReportsUnusableSchema and TestLint_PrintsAllowBlockForEntryOfOperatorSDK.
func TestLint_HazardsCoverEveryRule(t *testing.T) {
	found := map[string]bool{}
	for _, test := range hazards {
		for _, want := range test.want {
			found[strings.Fields(want)[1]] = true
		}
	}
	for _, rule := range lint.Rules() {
		if !found[rule.Name] && rule.Name != "schema-unusable" && rule.Name != "allow-missing" {
			t.Errorf("no hazard for rule %s", rule.Name)
		}
		delete(found, rule.Name)
	}
	if len(found) > 0 {
		t.Errorf("unknown rules: %v", found)
	}
}

// TestLint_EmbeddedChartsAreClean checks the charts that are examples for users.
func TestLint_EmbeddedChartsAreClean(t *testing.T) {
	kinds, err := catalog.FromFS(chartwright.Files, chartwright.WatchesFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range kinds {
		if found := run(t, lint.Target{Path: kind.Watch.Chart, Kind: kind}); len(found) > 0 {
			t.Errorf("%s: %v", kind.Kind, found)
		}
		if found := run(t, lint.Standalone(path.Base(kind.Watch.Chart), kind.Chart)); len(found) > 0 {
			t.Errorf("%s without its entry: %v", kind.Kind, found)
		}
	}
}
