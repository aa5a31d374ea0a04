package chart

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright/internal/chart/analysis"
)

func TestFeatures(t *testing.T) {
	versions, apis := analysis.Features{KubeVersion: true}, analysis.Features{APIVersions: true}
	const helper = `{{ define "has" }}{{ if and (empty .x) (.context.Capabilities.APIVersions.Has .version) }}true{{ end }}{{ end }}`
	has := func(apis ...string) analysis.Features { return analysis.Features{APIs: apis} }
	for _, test := range []struct {
		name, template string
		want           analysis.Features
	}{
		{"nothing", `{{ .Values.capabilities }}`, analysis.Features{}},
		{"text alone", "Capabilities lookup", analysis.Features{}},
		{"KubeVersion", `{{ .Capabilities.KubeVersion.Version }}`, versions},
		{"KubeVersion as an argument", `{{ if semverCompare ">=1.30" .Capabilities.KubeVersion.GitVersion }}a{{ end }}`, versions},
		{"APIVersions", `{{ .Capabilities.APIVersions | toJson }}`, apis},
		{"one API", `{{ if .Capabilities.APIVersions.Has "policy/v1" }}a{{ end }}`, has("policy/v1")},
		{"one API, asked for twice", `{{ if or ($.Capabilities.APIVersions.Has "policy/v1") (.Capabilities.APIVersions.Has "policy/v1") }}a{{ end }}`, has("policy/v1")},
		{"several APIs", `{{ if .Capabilities.APIVersions.Has "b/v1" }}{{ else if .Capabilities.APIVersions.Has "a/v1/Thing" }}{{ end }}`, has("a/v1/Thing", "b/v1")},
		{"an API that a value names", `{{ if .Capabilities.APIVersions.Has .Values.api }}a{{ end }}`, apis},
		{"an API by a context", `{{ if .context.Capabilities.APIVersions.Has "policy/v1" }}a{{ end }}`, has("policy/v1")},
		{"an API that a deep value names", `{{ if .Capabilities.APIVersions.Has .Values.deep.api }}a{{ end }}`, apis},
		{"APIs by a helper", helper + `{{ include "has" (dict "version" "a/v1" "context" $) }}{{ if include "has" (dict "context" . "version" "b/v1/Thing") }}{{ end }}`, has("a/v1", "b/v1/Thing")},
		{"APIs by a helper in a template node", helper + `{{ template "has" (dict "version" "a/v1" "context" $) }}`, has("a/v1")},
		{"APIs by a helper, beside a checksum", helper + `{{ include "has" (dict "version" "a/v1" "context" $) }}{{ include (print $.Template.BasePath "/a.yaml") . | sha256sum }}`, has("a/v1")},
		{"APIs by a helper, one by a value", helper + `{{ include "has" (dict "version" "a/v1") }}{{ include "has" (dict "version" .Values.api) }}`, apis},
		{"APIs by a helper that is given a key twice", helper + `{{ include "has" (dict "version" "a/v1" "version" "b/v1") }}`, has("b/v1")},
		{"APIs by a helper that is given a computed key", helper + `{{ include "has" (dict "version" "a/v1" .Values.key "b/v1") }}`, apis},
		{"APIs by a helper in a text for tpl", helper + `{{ include "has" (dict "version" "a/v1") }}{{ tpl "{{ include \"has\" (dict \"version\" \"b/v1\") }}" . }}`, apis},
		{"APIs by a helper that calls itself", `{{ define "has" }}{{ .context.Capabilities.APIVersions.Has .version }}{{ include "has" (dict "version" .next) }}{{ end }}{{ include "has" (dict "version" "a/v1") }}`, apis},
		{"APIs by a helper that moves its dot", `{{ define "has" }}{{ range .all }}{{ $.context.Capabilities.APIVersions.Has .version }}{{ end }}{{ end }}{{ include "has" (dict "version" "a/v1" "all" .Values.all) }}`, apis},
		{"APIs by a helper that may change its argument", `{{ define "has" }}{{ $_ := set . "version" "b/v1" }}{{ .context.Capabilities.APIVersions.Has .version }}{{ end }}{{ include "has" (dict "version" "a/v1") }}`, apis},
		{"APIs by a helper that passes its argument on", `{{ define "has" }}{{ include "y" $ }}{{ .context.Capabilities.APIVersions.Has .version }}{{ end }}{{ include "has" (dict "version" "a/v1") }}`, apis},
		{"APIs of a list", `{{ range .Values.all }}{{ if $.Capabilities.APIVersions.Has .api }}a{{ end }}{{ end }}`, apis},
		{"APIs by a helper of a helper", helper + `{{ define "y" }}{{ include "has" (dict "version" "a/v1" "context" .) }}{{ end }}{{ include "y" . }}`, has("a/v1")},
		{"APIs by a helper of an unused helper", helper + `{{ define "y" }}{{ include "has" (dict "version" "a/v1" "context" .) }}{{ end }}{{ include "has" (dict "version" "b/v1") }}`, has("b/v1")},
		{"all APIs in a helper that nobody calls", `{{ define "x" }}{{ .Capabilities | toString }}{{ end }}`, analysis.Features{}},
		{"APIs by a helper that gets more than a dict", helper + `{{ include "has" . }}`, apis},
		{"APIs by a helper through a pipe", helper + `{{ . | include "has" }}`, apis},
		{"APIs by a helper that is computed", helper + `{{ include "has" (dict "version" "a/v1") }}{{ include .Values.helper . }}`, apis},
		{"a helper that nobody calls", helper, analysis.Features{}},
		{"in an else", `{{ if .Values.a }}{{ else if .Values.b }}{{ else }}{{ .Capabilities.APIVersions }}{{ end }}`, apis},
		{"in a range", `{{ range .Capabilities.APIVersions }}{{ . }}{{ end }}`, apis},
		{"in a range's else", `{{ range .Values.a }}{{ else }}{{ .Capabilities.APIVersions }}{{ end }}`, apis},
		{"in a with", `{{ with .Capabilities.KubeVersion }}{{ .Major }}{{ end }}`, versions},
		{"by $", `{{ range .Values.a }}{{ $.Capabilities.KubeVersion }}{{ end }}`, versions},
		{"by a variable", `{{ $root := . }}{{ $root.Capabilities.APIVersions.Has "v1" }}`, has("v1")},
		{"in parentheses", `{{ (.Capabilities).KubeVersion }}`, analysis.Features{KubeVersion: true, APIVersions: true}},
		{"in an assignment", `{{ $v := .Capabilities.KubeVersion.Minor }}`, versions},
		{"in a pipeline", `{{ .Capabilities.KubeVersion.Minor | int | add 1 }}`, versions},
		{"whole", `{{ toYaml .Capabilities }}`, analysis.Features{KubeVersion: true, APIVersions: true}},
		{"whole in a with", `{{ with .Capabilities }}{{ .KubeVersion }}{{ end }}`, analysis.Features{KubeVersion: true, APIVersions: true}},
		{"by index", `{{ (index . "Capabilities").KubeVersion }}`, analysis.Features{KubeVersion: true, APIVersions: true}},
		{"by get", `{{ get . "Capabilities" | toYaml }}`, analysis.Features{KubeVersion: true, APIVersions: true}},
		{"in a text for tpl", `{{ tpl "{{ .Capabilities.KubeVersion }}" . }}`, analysis.Features{KubeVersion: true, APIVersions: true}},
		{"Helm's version is ours", `{{ .Capabilities.HelmVersion.Version }}`, analysis.Features{}},
		{"to a helper", `{{ include "x" (dict "v" .Capabilities.KubeVersion) }}`, versions},
		{"in a define that is included", `{{ define "x" }}{{ .Capabilities.KubeVersion }}{{ end }}{{ include "x" . }}`, versions},
		{"in a define that is included by another", `{{ define "x" }}{{ .Capabilities.KubeVersion }}{{ end }}{{ define "y" }}{{ include "x" . }}{{ end }}{{ . | include "y" }}`, versions},
		{"in a define that is included by an unused one", `{{ define "x" }}{{ .Capabilities.KubeVersion }}{{ end }}{{ define "y" }}{{ include "x" . }}{{ end }}`, analysis.Features{}},
		{"in a define that includes itself", `{{ define "x" }}{{ .Capabilities.KubeVersion }}{{ include "x" . }}{{ end }}`, analysis.Features{}},
		{"in a define that may be included by a computed name", `{{ define "x" }}{{ .Capabilities.KubeVersion }}{{ end }}{{ include (printf "%s" .Values.helper) . }}`, versions},
		{"in a define beside the checksum of a file", `{{ define "x" }}{{ .Capabilities.KubeVersion }}{{ end }}{{ include (print .Template.BasePath "/a.yaml") . | sha256sum }}`, analysis.Features{}},
		{"in a define that a text for tpl includes", `{{ define "x" }}{{ .Capabilities.KubeVersion }}{{ end }}{{ tpl "{{ include \"x\" . }}" . }}`, versions},
		{"in a define that a text for tpl may include", `{{ define "x" }}{{ .Capabilities.KubeVersion }}{{ end }}{{ tpl (printf "{{ include %q . }}" .Values.helper) . }}`, versions},
		{"in a define that a text for tpl may include in a with", `{{ define "x" }}{{ .Capabilities.KubeVersion }}{{ end }}{{ tpl (printf "{{ with %s }}{{ . }}{{ end }}" .Values.call) . }}`, versions},
		{"in a define that a composed text may include", `{{ define "x" }}{{ .Capabilities.KubeVersion }}{{ end }}{{ tpl (cat "{{" .Values.call "}}") . }}`, versions},
		{"in a define beside braces for other programs", `{{ define "x" }}{{ .Capabilities.KubeVersion }}{{ end }}{{ "{{" }} $labels.pod {{ "}}" }}`, analysis.Features{}},
		{"in a define beside a text for tpl that includes nothing", `{{ define "x" }}{{ .Capabilities.KubeVersion }}{{ end }}{{ tpl (cat "{{- with $.scope -}}" .Values.a "{{- end }}") . }}`, analysis.Features{}},
		{"lookup in a define", `{{ define "x" }}{{ lookup "v1" "Secret" "a" "b" }}{{ end }}`, analysis.Features{Lookup: true}},
		{"in a block", `{{ block "x" . }}{{ .Capabilities.KubeVersion }}{{ end }}`, versions},
		{"in a template's argument", `{{ define "x" }}{{ end }}{{ template "x" .Capabilities.KubeVersion }}`, versions},
		{"lookup", `{{ (lookup "v1" "Secret" "a" "b").data }}`, analysis.Features{Lookup: true}},
		{"lookup without a result", `{{ if not (lookup "v1" "Secret" "a" "b") }}x{{ end }}`, analysis.Features{Lookup: true}},
		{"lookup as a pipeline's end", `{{ .Values.name | lookup "v1" "Secret" "a" }}`, analysis.Features{Lookup: true}},
		{"a value called lookup", `{{ .Values.lookup }}`, analysis.Features{}},
		{"an install hook", "metadata: {annotations: {helm.sh/hook: pre-install}}", analysis.Features{}},
		{"a pre-delete hook", "metadata: {annotations: {helm.sh/hook: pre-delete}}", analysis.Features{DeleteHooks: true}},
		{"a post-delete hook among others", `helm.sh/hook: "pre-install,post-delete"`, analysis.Features{DeleteHooks: true}},
		{"a hook of a phase that values say", `"helm.sh/hook": {{ .Values.phase | quote }}`, analysis.Features{DeleteHooks: true}},
		{"a weight that values say", "helm.sh/hook: test\nhelm.sh/hook-weight: {{ .Values.weight | quote }}", analysis.Features{}},
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

func TestFeaturesOfDefaultValues(t *testing.T) {
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

func TestFeaturesOfNotesDoNotCount(t *testing.T) {
	if diff := cmp.Diff(analysis.Features{}, small().with("templates/NOTES.txt", `{{ .Capabilities.KubeVersion }}`).load(t).Features); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
