package lint_test

import (
	"slices"
	"testing"

	"github.com/chartwright/chartwright/internal/authoring/lint"
)

// TestRandomValuesThatAreKept says what a guard is: each template makes a random
// value, and it is found, or some value or the cluster takes its place.
func TestRandomValuesThatAreKept(t *testing.T) {
	const reads = `{{- $old := lookup "v1" "Secret" .Release.Namespace "x" }}` + "\n"
	for _, test := range []struct {
		name, template, helpers string
		found                   bool
	}{
		{name: "nothing around it", template: `{{ randAlphaNum 5 }}`, found: true},
		{name: "in a function", template: `{{ printf "%s" (uuidv4 | b64enc) | quote }}`, found: true},
		{name: "a hash with a salt of a value that is set", template: `{{ htpasswd "a" .Values.set }}`, found: true},

		{name: "where a lookup finds nothing", template: reads + `{{ if $old }}{{ $old.data.a }}{{ else }}{{ randAlphaNum 5 }}{{ end }}`},
		{name: "where a lookup in the condition finds nothing", template: `{{ if not (lookup "v1" "Secret" "" "x") }}{{ randAlphaNum 5 }}{{ end }}`},
		{name: "in a with", template: `{{ with lookup "v1" "Secret" .Release.Namespace "x" }}{{ .data.a }}{{ else }}{{ genCA "a" 365 }}{{ end }}`},
		{name: "as the default of what a lookup found", template: reads + `{{ (($old).data).a | default (randAlphaNum 5) }}`},
		{name: "the other way round", template: reads + `{{ default (randAlphaNum 5 | b64enc) (index $old "a") }}`},
		{name: "made first and replaced by what a lookup found", template: "{{ $new := randAlphaNum 5 }}\n" + reads + `{{ if $old }}{{ $new = $old.data.a }}{{ end }}{{ $new }}`},
		{name: "made in parentheses and replaced", template: "{{ $new := (printf \"%s\" (randAlphaNum 5)) }}\n" + reads + `{{ if $old }}{{ $new = $old.data.a }}{{ end }}{{ $new }}`},
		{name: "a lookup that decides something else", template: reads + `{{ if $old }}{{ end }}{{ randAlphaNum 5 }}`, found: true},
		{name: "a variable that something else replaces", template: `{{ $new := randAlphaNum 5 }}{{ if .Values.empty }}{{ $new = .Values.empty }}{{ end }}`, found: true},
		{name: "what a lookup found by way of another variable", template: reads + `{{ $data := $old.data }}{{ if $data }}{{ else }}{{ randAlphaNum 5 }}{{ end }}`},

		{name: "the default of a value that is empty", template: `{{ .Values.empty | default (randAlphaNum 5) }}`, found: true},
		{name: "the default of a value that is set", template: `{{ .Values.set | default (randAlphaNum 5) }}`},
		{name: "the default of a value that is required", template: `{{ default (randAlphaNum 5) .Values.must }}`},
		{name: "the default of a deep value that is required", template: `{{ coalesce .Values.empty .Values.deep.must (randAlphaNum 5) }}`},
		{name: "the default of a value by a variable", template: `{{ $v := .Values.set }}{{ $v | default (randAlphaNum 5) }}`},
		{name: "the other operand", template: `{{ default .Values.set (randAlphaNum 5) }}`, found: true},
		{name: "coalesce in the other order", template: `{{ coalesce (randAlphaNum 5) .Values.set }}`, found: true},
		{name: "coalesce before a value that is set", template: `{{ coalesce .Values.empty (randAlphaNum 5) .Values.set }}`, found: true},
		{name: "else of a value that is set", template: `{{ if $.Values.set }}{{ else }}{{ randAlphaNum 5 }}{{ end }}`},
		{name: "then of a value that is set", template: `{{ if .Values.set }}{{ randAlphaNum 5 }}{{ end }}`, found: true},
		{name: "then of not a value that is set", template: `{{ if not .Values.set }}{{ randAlphaNum 5 }}{{ end }}`},
		{name: "else of not a value that is set", template: `{{ if not .Values.set }}{{ else }}{{ randAlphaNum 5 }}{{ end }}`, found: true},
		{name: "else of a value that is empty", template: `{{ if .Values.empty }}{{ else }}{{ randAlphaNum 5 }}{{ end }}`, found: true},

		{name: "in a helper that is not used", helpers: `{{ define "a" }}{{ randAlphaNum 5 }}{{ end }}`},
		{name: "in a helper", helpers: `{{ define "a" }}{{ randAlphaNum 5 }}{{ end }}`, template: `{{ include "a" . }}`, found: true},
		{name: "in a helper of a helper", helpers: `{{ define "a" }}{{ randAlphaNum 5 }}{{ end }}{{ define "b" }}{{ template "a" . }}{{ end }}`, template: `{{ include "b" . }}`, found: true},
		{name: "in helpers that use each other alone", helpers: `{{ define "a" }}{{ randAlphaNum 5 }}{{ include "b" . }}{{ end }}{{ define "b" }}{{ include "a" . }}{{ end }}`},
		{name: "in a helper that is included by a name that is computed", helpers: `{{ define "a" }}{{ randAlphaNum 5 }}{{ end }}`, template: `{{ include (printf "%s" "a") . }}`, found: true},
		{name: "in a helper that is kept where it is used", helpers: `{{ define "a" }}{{ randAlphaNum 5 }}{{ end }}`, template: reads + `{{ if $old }}{{ else }}{{ include "a" . }}{{ end }}`},
		{name: "in a helper that is kept in one place of two", helpers: `{{ define "a" }}{{ randAlphaNum 5 }}{{ end }}`, template: reads + `{{ if $old }}{{ else }}{{ include "a" . }}{{ end }}{{ include "a" . }}`, found: true},
		{name: "in a helper that looks by itself", helpers: `{{ define "a" }}{{ if lookup "v1" "Secret" .Release.Namespace "x" }}{{ else }}{{ randAlphaNum 5 }}{{ end }}{{ end }}`, template: `{{ include "a" . }}`},
		{name: "in a helper that looks for something else", helpers: `{{ define "a" }}{{ if lookup "v1" "Secret" .Release.Namespace "x" }}{{ end }}{{ randAlphaNum 5 }}{{ end }}`, template: `{{ include "a" . }}`, found: true},
		{name: "where a helper that looks finds nothing", helpers: `{{ define "old" }}{{ lookup "v1" "Secret" .Release.Namespace "x" }}{{ end }}`, template: `{{ if include "old" . }}{{ else }}{{ randAlphaNum 5 }}{{ end }}`},
		{name: "as the default of a helper that looks", helpers: `{{ define "old" }}{{ lookup "v1" "Secret" .Release.Namespace "x" }}{{ end }}`, template: `{{ include "old" . | default (randAlphaNum 5) }}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			found := run(t, lint.Alone("box", load(t, files{
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

// TestSubchartsHaveValuesOfTheirOwn: what is set for the parent is not for them.
func TestSubchartsHaveValuesOfTheirOwn(t *testing.T) {
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
	if found := run(t, lint.Alone("box", load(t, chart("word: a\n")))); !slices.Contains(found, want) {
		t.Errorf("found %v, want %s", found, want)
	}
	if found := run(t, lint.Alone("box", load(t, chart("sub: {word: a}\n")))); slices.Contains(found, want) {
		t.Errorf("found %v", found)
	}
}
