package chart

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright/internal/chart/analysis"
)

func TestFeatures_OfTemplates(t *testing.T) {
	versions, apis := analysis.Features{KubeVersion: true}, analysis.Features{APIVersions: true}
	const helper = `{{ define "has" }}{{ if and (empty .x) (.context.Capabilities.APIVersions.Has .version) }}true{{ end }}{{ end }}`
	has := func(apis ...string) analysis.Features { return analysis.Features{APIs: apis} }
	for _, test := range []struct {
		name, template string
		want           analysis.Features
	}{
		{"no capabilities", `{{ .Values.capabilities }}`, analysis.Features{}},
		{"the words outside an action", "Capabilities lookup", analysis.Features{}},
		{"KubeVersion", `{{ .Capabilities.KubeVersion.Version }}`, versions},
		{"KubeVersion as an argument", `{{ if semverCompare ">=1.30" .Capabilities.KubeVersion.GitVersion }}a{{ end }}`, versions},
		{"APIVersions", `{{ .Capabilities.APIVersions | toJson }}`, apis},
		{"one API", `{{ if .Capabilities.APIVersions.Has "policy/v1" }}a{{ end }}`, has("policy/v1")},
		{"one API, read twice", `{{ if or ($.Capabilities.APIVersions.Has "policy/v1") (.Capabilities.APIVersions.Has "policy/v1") }}a{{ end }}`, has("policy/v1")},
		{"several APIs", `{{ if .Capabilities.APIVersions.Has "b/v1" }}{{ else if .Capabilities.APIVersions.Has "a/v1/Thing" }}{{ end }}`, has("a/v1/Thing", "b/v1")},
		{"an API from a value", `{{ if .Capabilities.APIVersions.Has .Values.api }}a{{ end }}`, apis},
		{"an API through a context key", `{{ if .context.Capabilities.APIVersions.Has "policy/v1" }}a{{ end }}`, has("policy/v1")},
		{"an API from a nested value", `{{ if .Capabilities.APIVersions.Has .Values.deep.api }}a{{ end }}`, apis},
		{"APIs passed to a helper", helper + `{{ include "has" (dict "version" "a/v1" "context" $) }}{{ if include "has" (dict "context" . "version" "b/v1/Thing") }}{{ end }}`, has("a/v1", "b/v1/Thing")},
		{"an API passed to a helper by template", helper + `{{ template "has" (dict "version" "a/v1" "context" $) }}`, has("a/v1")},
		{"an API passed to a helper, and a checksum of a file", helper + `{{ include "has" (dict "version" "a/v1" "context" $) }}{{ include (print $.Template.BasePath "/a.yaml") . | sha256sum }}`, has("a/v1")},
		{"APIs passed to a helper, one from a value", helper + `{{ include "has" (dict "version" "a/v1") }}{{ include "has" (dict "version" .Values.api) }}`, apis},
		{"an API passed to a helper under a duplicate key", helper + `{{ include "has" (dict "version" "a/v1" "version" "b/v1") }}`, has("b/v1")},
		{"an API passed to a helper with a computed key", helper + `{{ include "has" (dict "version" "a/v1" .Values.key "b/v1") }}`, apis},
		{"an API passed to a helper in an argument of tpl", helper + `{{ include "has" (dict "version" "a/v1") }}{{ tpl "{{ include \"has\" (dict \"version\" \"b/v1\") }}" . }}`, apis},
		{"an API passed to a recursive helper", `{{ define "has" }}{{ .context.Capabilities.APIVersions.Has .version }}{{ include "has" (dict "version" .next) }}{{ end }}{{ include "has" (dict "version" "a/v1") }}`, apis},
		{"an API passed to a helper with a range", `{{ define "has" }}{{ range .all }}{{ $.context.Capabilities.APIVersions.Has .version }}{{ end }}{{ end }}{{ include "has" (dict "version" "a/v1" "all" .Values.all) }}`, apis},
		{"an API passed to a helper that modifies its argument", `{{ define "has" }}{{ $_ := set . "version" "b/v1" }}{{ .context.Capabilities.APIVersions.Has .version }}{{ end }}{{ include "has" (dict "version" "a/v1") }}`, apis},
		{"an API passed to a helper that passes its argument to another", `{{ define "has" }}{{ include "y" $ }}{{ .context.Capabilities.APIVersions.Has .version }}{{ end }}{{ include "has" (dict "version" "a/v1") }}`, apis},
		{"APIs from a list", `{{ range .Values.all }}{{ if $.Capabilities.APIVersions.Has .api }}a{{ end }}{{ end }}`, apis},
		{"an API passed to a helper by a helper", helper + `{{ define "y" }}{{ include "has" (dict "version" "a/v1" "context" .) }}{{ end }}{{ include "y" . }}`, has("a/v1")},
		{"an API passed to a helper by an unused helper", helper + `{{ define "y" }}{{ include "has" (dict "version" "a/v1" "context" .) }}{{ end }}{{ include "has" (dict "version" "b/v1") }}`, has("b/v1")},
		{"all APIs in an unused helper", `{{ define "x" }}{{ .Capabilities | toString }}{{ end }}`, analysis.Features{}},
		{"a helper whose argument is not a dict", helper + `{{ include "has" . }}`, apis},
		{"a helper in a pipeline", helper + `{{ . | include "has" }}`, apis},
		{"a helper with a computed name", helper + `{{ include "has" (dict "version" "a/v1") }}{{ include .Values.helper . }}`, apis},
		{"an unused helper", helper, analysis.Features{}},
		{"in an else", `{{ if .Values.a }}{{ else if .Values.b }}{{ else }}{{ .Capabilities.APIVersions }}{{ end }}`, apis},
		{"in a range", `{{ range .Capabilities.APIVersions }}{{ . }}{{ end }}`, apis},
		{"in a range's else", `{{ range .Values.a }}{{ else }}{{ .Capabilities.APIVersions }}{{ end }}`, apis},
		{"in a with", `{{ with .Capabilities.KubeVersion }}{{ .Major }}{{ end }}`, versions},
		{"through $", `{{ range .Values.a }}{{ $.Capabilities.KubeVersion }}{{ end }}`, versions},
		{"through a variable", `{{ $root := . }}{{ $root.Capabilities.APIVersions.Has "v1" }}`, has("v1")},
		{"in parentheses", `{{ (.Capabilities).KubeVersion }}`, analysis.Features{KubeVersion: true, APIVersions: true}},
		{"in an assignment", `{{ $v := .Capabilities.KubeVersion.Minor }}`, versions},
		{"in a pipeline", `{{ .Capabilities.KubeVersion.Minor | int | add 1 }}`, versions},
		{"all capabilities", `{{ toYaml .Capabilities }}`, analysis.Features{KubeVersion: true, APIVersions: true}},
		{"all capabilities in a with", `{{ with .Capabilities }}{{ .KubeVersion }}{{ end }}`, analysis.Features{KubeVersion: true, APIVersions: true}},
		{"through index", `{{ (index . "Capabilities").KubeVersion }}`, analysis.Features{KubeVersion: true, APIVersions: true}},
		{"through get", `{{ get . "Capabilities" | toYaml }}`, analysis.Features{KubeVersion: true, APIVersions: true}},
		{"in an argument of tpl", `{{ tpl "{{ .Capabilities.KubeVersion }}" . }}`, analysis.Features{KubeVersion: true, APIVersions: true}},
		{"the version of Helm", `{{ .Capabilities.HelmVersion.Version }}`, analysis.Features{}},
		{"passed to a helper", `{{ include "x" (dict "v" .Capabilities.KubeVersion) }}`, versions},
		{"in an included define", `{{ define "x" }}{{ .Capabilities.KubeVersion }}{{ end }}{{ include "x" . }}`, versions},
		{"in a define that another one includes", `{{ define "x" }}{{ .Capabilities.KubeVersion }}{{ end }}{{ define "y" }}{{ include "x" . }}{{ end }}{{ . | include "y" }}`, versions},
		{"in a define that an unused one includes", `{{ define "x" }}{{ .Capabilities.KubeVersion }}{{ end }}{{ define "y" }}{{ include "x" . }}{{ end }}`, analysis.Features{}},
		{"in an unused recursive define", `{{ define "x" }}{{ .Capabilities.KubeVersion }}{{ include "x" . }}{{ end }}`, analysis.Features{}},
		{"in a define that a computed name may include", `{{ define "x" }}{{ .Capabilities.KubeVersion }}{{ end }}{{ include (printf "%s" .Values.helper) . }}`, versions},
		{"in an unused define, and a checksum of a file", `{{ define "x" }}{{ .Capabilities.KubeVersion }}{{ end }}{{ include (print .Template.BasePath "/a.yaml") . | sha256sum }}`, analysis.Features{}},
		{"in a define that an argument of tpl includes", `{{ define "x" }}{{ .Capabilities.KubeVersion }}{{ end }}{{ tpl "{{ include \"x\" . }}" . }}`, versions},
		{"in a define that a formatted argument of tpl may include", `{{ define "x" }}{{ .Capabilities.KubeVersion }}{{ end }}{{ tpl (printf "{{ include %q . }}" .Values.helper) . }}`, versions},
		{"in a define that a formatted argument of tpl may include in a with", `{{ define "x" }}{{ .Capabilities.KubeVersion }}{{ end }}{{ tpl (printf "{{ with %s }}{{ . }}{{ end }}" .Values.call) . }}`, versions},
		{"in a define that a concatenated argument of tpl may include", `{{ define "x" }}{{ .Capabilities.KubeVersion }}{{ end }}{{ tpl (cat "{{" .Values.call "}}") . }}`, versions},
		{"in an unused define, and braces of other programs", `{{ define "x" }}{{ .Capabilities.KubeVersion }}{{ end }}{{ "{{" }} $labels.pod {{ "}}" }}`, analysis.Features{}},
		{"in an unused define, and an argument of tpl without include", `{{ define "x" }}{{ .Capabilities.KubeVersion }}{{ end }}{{ tpl (cat "{{- with $.scope -}}" .Values.a "{{- end }}") . }}`, analysis.Features{}},
		{"lookup in an unused define", `{{ define "x" }}{{ lookup "v1" "Secret" "a" "b" }}{{ end }}`, analysis.Features{Lookup: true}},
		{"in a block", `{{ block "x" . }}{{ .Capabilities.KubeVersion }}{{ end }}`, versions},
		{"in a template's argument", `{{ define "x" }}{{ end }}{{ template "x" .Capabilities.KubeVersion }}`, versions},
		{"lookup", `{{ (lookup "v1" "Secret" "a" "b").data }}`, analysis.Features{Lookup: true}},
		{"lookup whose result is only tested", `{{ if not (lookup "v1" "Secret" "a" "b") }}x{{ end }}`, analysis.Features{Lookup: true}},
		{"lookup at the end of a pipeline", `{{ .Values.name | lookup "v1" "Secret" "a" }}`, analysis.Features{Lookup: true}},
		{"a value named lookup", `{{ .Values.lookup }}`, analysis.Features{}},
		{"an install hook", "metadata: {annotations: {helm.sh/hook: pre-install}}", analysis.Features{}},
		{"a pre-delete hook", "metadata: {annotations: {helm.sh/hook: pre-delete}}", analysis.Features{DeleteHooks: true}},
		{"a post-delete hook with another event", `helm.sh/hook: "pre-install,post-delete"`, analysis.Features{DeleteHooks: true}},
		{"a hook whose event comes from a value", `"helm.sh/hook": {{ .Values.phase | quote }}`, analysis.Features{DeleteHooks: true}},
		{"a hook whose weight comes from a value", "helm.sh/hook: test\nhelm.sh/hook-weight: {{ .Values.weight | quote }}", analysis.Features{}},
		{"a comment", `{{/* .Capabilities.KubeVersion */}}`, analysis.Features{}},
		{"break and continue", `{{ range .Values.a }}{{ if . }}{{ break }}{{ else }}{{ continue }}{{ end }}{{ end }}`, analysis.Features{}},
	} {
		for _, name := range []string{"templates/x.yaml", "templates/_x.tpl"} {
			t.Run(test.name+" in "+name, func(t *testing.T) {
				if diff := cmp.Diff(test.want, small().with(name, test.template).load(t).Features); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
		t.Run(test.name+" in a subchart", func(t *testing.T) {
			c := small().
				with("charts/child/Chart.yaml", "apiVersion: v2\nname: child\nversion: 1.0.0\n").
				with("charts/child/templates/x.yaml", test.template)
			if diff := cmp.Diff(test.want, c.load(t).Features); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestFeatures_OfDefaultValues(t *testing.T) {
	for text, want := range map[string]analysis.Features{
		"api: '{{ .Capabilities.KubeVersion }}'":              {KubeVersion: true, APIVersions: true},
		"# as Capabilities do\na: 1":                          {},
		"# reported by .Capabilities\na: 1":                   {},
		"a:\n- b: |\n    # {{ .Capabilities.KubeVersion }}\n": {KubeVersion: true, APIVersions: true},
		"'{{ .Capabilities.KubeVersion }}': 1":                {KubeVersion: true, APIVersions: true},
	} {
		child := small().with("charts/child/Chart.yaml", "apiVersion: v2\nname: child\nversion: 1.0.0\n").with("charts/child/values.yaml", text)
		for _, c := range []files{small().with("values.yaml", text), child} {
			if diff := cmp.Diff(want, c.load(t).Features); diff != "" {
				t.Errorf("%s (-want +got):\n%s", text, diff)
			}
		}
	}
}

func TestFeatures_IgnoreNotes(t *testing.T) {
	if diff := cmp.Diff(analysis.Features{}, small().with("templates/NOTES.txt", `{{ .Capabilities.KubeVersion }}`).load(t).Features); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
