package lint_test

import (
	"slices"
	"testing"

	"github.com/chartwright/chartwright/internal/authoring/lint"
)

// TestRandomValue_NotReportedIfGuarded renders templates that generate a random value,
// most of them only if a value is not set or a lookup finds nothing.
func TestRandomValue_NotReportedIfGuarded(t *testing.T) {
	const reads = `{{- $old := lookup "v1" "Secret" .Release.Namespace "x" }}` + "\n"
	for _, test := range []struct {
		name, template, helpers string
		found                   bool
	}{
		{name: "unguarded", template: `{{ randAlphaNum 5 }}`, found: true},
		{name: "in a function", template: `{{ printf "%s" (uuidv4 | b64enc) | quote }}`, found: true},
		{name: "a salted hash of a value that is set", template: `{{ htpasswd "a" .Values.set }}`, found: true},

		{name: "if a lookup finds nothing", template: reads + `{{ if $old }}{{ $old.data.a }}{{ else }}{{ randAlphaNum 5 }}{{ end }}`},
		{name: "if a lookup in the condition finds nothing", template: `{{ if not (lookup "v1" "Secret" "" "x") }}{{ randAlphaNum 5 }}{{ end }}`},
		{name: "in a with", template: `{{ with lookup "v1" "Secret" .Release.Namespace "x" }}{{ .data.a }}{{ else }}{{ genCA "a" 365 }}{{ end }}`},
		{name: "as the default of a lookup result", template: reads + `{{ (($old).data).a | default (randAlphaNum 5) }}`},
		{name: "with a lookup result as argument of default", template: reads + `{{ default (randAlphaNum 5 | b64enc) (index $old "a") }}`},
		{name: "generated first and replaced by a lookup result", template: "{{ $new := randAlphaNum 5 }}\n" + reads + `{{ if $old }}{{ $new = $old.data.a }}{{ end }}{{ $new }}`},
		{name: "generated in parentheses and replaced", template: "{{ $new := (printf \"%s\" (randAlphaNum 5)) }}\n" + reads + `{{ if $old }}{{ $new = $old.data.a }}{{ end }}{{ $new }}`},
		{name: "a lookup with another effect", template: reads + `{{ if $old }}{{ end }}{{ randAlphaNum 5 }}`, found: true},
		{name: "a variable that another value replaces", template: `{{ $new := randAlphaNum 5 }}{{ if .Values.empty }}{{ $new = .Values.empty }}{{ end }}`, found: true},
		{name: "a lookup result in another variable", template: reads + `{{ $data := $old.data }}{{ if $data }}{{ else }}{{ randAlphaNum 5 }}{{ end }}`},

		{name: "the default of a value that is empty", template: `{{ .Values.empty | default (randAlphaNum 5) }}`, found: true},
		{name: "the default of a value that is set", template: `{{ .Values.set | default (randAlphaNum 5) }}`},
		{name: "the default of a value that is required", template: `{{ default (randAlphaNum 5) .Values.must }}`},
		{name: "the default of a nested value that is required", template: `{{ coalesce .Values.empty .Values.deep.must (randAlphaNum 5) }}`},
		{name: "the default of a value in a variable", template: `{{ $v := .Values.set }}{{ $v | default (randAlphaNum 5) }}`},
		{name: "operands of default swapped", template: `{{ default .Values.set (randAlphaNum 5) }}`, found: true},
		{name: "coalesce with the random value first", template: `{{ coalesce (randAlphaNum 5) .Values.set }}`, found: true},
		{name: "coalesce before a value that is set", template: `{{ coalesce .Values.empty (randAlphaNum 5) .Values.set }}`, found: true},
		{name: "in the else of a value that is set", template: `{{ if $.Values.set }}{{ else }}{{ randAlphaNum 5 }}{{ end }}`},
		{name: "in the then of a value that is set", template: `{{ if .Values.set }}{{ randAlphaNum 5 }}{{ end }}`, found: true},
		{name: "in the then of a negated value that is set", template: `{{ if not .Values.set }}{{ randAlphaNum 5 }}{{ end }}`},
		{name: "in the else of a negated value that is set", template: `{{ if not .Values.set }}{{ else }}{{ randAlphaNum 5 }}{{ end }}`, found: true},
		{name: "in the else of a value that is empty", template: `{{ if .Values.empty }}{{ else }}{{ randAlphaNum 5 }}{{ end }}`, found: true},

		{name: "in a helper that is not used", helpers: `{{ define "a" }}{{ randAlphaNum 5 }}{{ end }}`},
		{name: "in a helper", helpers: `{{ define "a" }}{{ randAlphaNum 5 }}{{ end }}`, template: `{{ include "a" . }}`, found: true},
		{name: "in a helper of a helper", helpers: `{{ define "a" }}{{ randAlphaNum 5 }}{{ end }}{{ define "b" }}{{ template "a" . }}{{ end }}`, template: `{{ include "b" . }}`, found: true},
		{name: "in helpers that only include each other", helpers: `{{ define "a" }}{{ randAlphaNum 5 }}{{ include "b" . }}{{ end }}{{ define "b" }}{{ include "a" . }}{{ end }}`},
		{name: "in a helper that is included by a computed name", helpers: `{{ define "a" }}{{ randAlphaNum 5 }}{{ end }}`, template: `{{ include (printf "%s" "a") . }}`, found: true},
		{name: "in a helper with a guarded include", helpers: `{{ define "a" }}{{ randAlphaNum 5 }}{{ end }}`, template: reads + `{{ if $old }}{{ else }}{{ include "a" . }}{{ end }}`},
		{name: "in a helper with one guarded and one unguarded include", helpers: `{{ define "a" }}{{ randAlphaNum 5 }}{{ end }}`, template: reads + `{{ if $old }}{{ else }}{{ include "a" . }}{{ end }}{{ include "a" . }}`, found: true},
		{name: "in a helper with its own lookup", helpers: `{{ define "a" }}{{ if lookup "v1" "Secret" .Release.Namespace "x" }}{{ else }}{{ randAlphaNum 5 }}{{ end }}{{ end }}`, template: `{{ include "a" . }}`},
		{name: "in a helper with a lookup that has another effect", helpers: `{{ define "a" }}{{ if lookup "v1" "Secret" .Release.Namespace "x" }}{{ end }}{{ randAlphaNum 5 }}{{ end }}`, template: `{{ include "a" . }}`, found: true},
		{name: "if a helper with a lookup returns nothing", helpers: `{{ define "old" }}{{ lookup "v1" "Secret" .Release.Namespace "x" }}{{ end }}`, template: `{{ if include "old" . }}{{ else }}{{ randAlphaNum 5 }}{{ end }}`},
		{name: "as the default of a helper with a lookup", helpers: `{{ define "old" }}{{ lookup "v1" "Secret" .Release.Namespace "x" }}{{ end }}`, template: `{{ include "old" . | default (randAlphaNum 5) }}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			found := run(t, lint.Standalone("box", load(t, files{
				"values.yaml":        "set: x\nempty: \"\"\n",
				"values.schema.json": `{"required": ["must", "deep"], "properties": {"deep": {"required": ["must"]}}}`,
				"ci/a-values.yaml":   "must: a\ndeep: {must: a}\n",
				"templates/_h.tpl":   test.helpers,
				"templates/b.yaml":   "# {{/* a comment */}}\n{{ define \"unused\" }}{{ end }}" + test.template + "\n",
			})))
			is := slices.ContainsFunc(found, func(f string) bool { return len(f) > 20 && f[:20] == "warning random-value" })
			if is != test.found {
				t.Errorf("found %v, want %v:\n%s\n%s", is, test.found, test.helpers, test.template)
			}
		})
	}
}

// TestRandomValue_SubchartIgnoresValuesOfParent checks that a value of the parent chart
// is no guard in a subchart.
func TestRandomValue_SubchartIgnoresValuesOfParent(t *testing.T) {
	chart := func(values string) files {
		return files{
			"Chart.yaml":                  "apiVersion: v2\nname: box\nversion: 1.0.0\ndependencies: [{name: sub, version: 1.0.0}]\n",
			"values.yaml":                 values,
			"values.schema.json":          "",
			"charts/sub/Chart.yaml":       "apiVersion: v2\nname: sub\nversion: 1.0.0\n",
			"charts/sub/templates/b.yaml": object("v1", "ConfigMap", "{{ .Release.Name }}-b", "data:", "  a: {{ .Values.word | default uuidv4 }}"),
		}
	}
	want := "warning random-value charts/sub/templates/b.yaml:6"
	if found := run(t, lint.Standalone("box", load(t, chart("word: a\n")))); !slices.Contains(found, want) {
		t.Errorf("found %v, want %s", found, want)
	}
	if found := run(t, lint.Standalone("box", load(t, chart("sub: {word: a}\n")))); slices.Contains(found, want) {
		t.Errorf("found %v", found)
	}
}
