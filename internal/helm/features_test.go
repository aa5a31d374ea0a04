package helm

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFeatures(t *testing.T) {
	versions, apis := Features{KubeVersion: true}, Features{APIVersions: true}
	has := func(apis ...string) Features { return Features{APIs: apis} }
	for _, test := range []struct {
		name, template string
		want           Features
	}{
		{"nothing", `{{ .Values.capabilities }}`, Features{}},
		{"text alone", "Capabilities lookup", Features{}},
		{"KubeVersion", `{{ .Capabilities.KubeVersion.Version }}`, versions},
		{"KubeVersion as an argument", `{{ if semverCompare ">=1.30" .Capabilities.KubeVersion.GitVersion }}a{{ end }}`, versions},
		{"APIVersions", `{{ .Capabilities.APIVersions | toJson }}`, apis},
		{"one API", `{{ if .Capabilities.APIVersions.Has "policy/v1" }}a{{ end }}`, has("policy/v1")},
		{"one API, asked for twice", `{{ if or ($.Capabilities.APIVersions.Has "policy/v1") (.Capabilities.APIVersions.Has "policy/v1") }}a{{ end }}`, has("policy/v1")},
		{"several APIs", `{{ if .Capabilities.APIVersions.Has "b/v1" }}{{ else if .Capabilities.APIVersions.Has "a/v1/Thing" }}{{ end }}`, has("a/v1/Thing", "b/v1")},
		{"an API that a value names", `{{ if .Capabilities.APIVersions.Has .Values.api }}a{{ end }}`, apis},
		{"in an else", `{{ if .Values.a }}{{ else if .Values.b }}{{ else }}{{ .Capabilities.APIVersions }}{{ end }}`, apis},
		{"in a range", `{{ range .Capabilities.APIVersions }}{{ . }}{{ end }}`, apis},
		{"in a range's else", `{{ range .Values.a }}{{ else }}{{ .Capabilities.APIVersions }}{{ end }}`, apis},
		{"in a with", `{{ with .Capabilities.KubeVersion }}{{ .Major }}{{ end }}`, versions},
		{"by $", `{{ range .Values.a }}{{ $.Capabilities.KubeVersion }}{{ end }}`, versions},
		{"by a variable", `{{ $root := . }}{{ $root.Capabilities.APIVersions.Has "v1" }}`, has("v1")},
		{"in parentheses", `{{ (.Capabilities).KubeVersion }}`, Features{KubeVersion: true, APIVersions: true}},
		{"in an assignment", `{{ $v := .Capabilities.KubeVersion.Minor }}`, versions},
		{"in a pipeline", `{{ .Capabilities.KubeVersion.Minor | int | add 1 }}`, versions},
		{"whole", `{{ toYaml .Capabilities }}`, Features{KubeVersion: true, APIVersions: true}},
		{"whole in a with", `{{ with .Capabilities }}{{ .KubeVersion }}{{ end }}`, Features{KubeVersion: true, APIVersions: true}},
		{"by index", `{{ (index . "Capabilities").KubeVersion }}`, Features{KubeVersion: true, APIVersions: true}},
		{"by get", `{{ get . "Capabilities" | toYaml }}`, Features{KubeVersion: true, APIVersions: true}},
		{"in a text for tpl", `{{ tpl "{{ .Capabilities.KubeVersion }}" . }}`, Features{KubeVersion: true, APIVersions: true}},
		{"Helm's version is ours", `{{ .Capabilities.HelmVersion.Version }}`, Features{}},
		{"to a helper", `{{ include "x" (dict "v" .Capabilities.KubeVersion) }}`, versions},
		{"in a define", `{{ define "x" }}{{ .Capabilities.KubeVersion }}{{ end }}`, versions},
		{"in a block", `{{ block "x" . }}{{ .Capabilities.KubeVersion }}{{ end }}`, versions},
		{"in a template's argument", `{{ define "x" }}{{ end }}{{ template "x" .Capabilities.KubeVersion }}`, versions},
		{"lookup", `{{ (lookup "v1" "Secret" "a" "b").data }}`, Features{Lookup: true}},
		{"lookup without a result", `{{ if not (lookup "v1" "Secret" "a" "b") }}x{{ end }}`, Features{Lookup: true}},
		{"lookup as a pipeline's end", `{{ .Values.name | lookup "v1" "Secret" "a" }}`, Features{Lookup: true}},
		{"a value called lookup", `{{ .Values.lookup }}`, Features{}},
		{"an install hook", "metadata: {annotations: {helm.sh/hook: pre-install}}", Features{}},
		{"a pre-delete hook", "metadata: {annotations: {helm.sh/hook: pre-delete}}", Features{DeleteHooks: true}},
		{"a post-delete hook among others", `helm.sh/hook: "pre-install,post-delete"`, Features{DeleteHooks: true}},
		{"a hook of a phase that values say", `"helm.sh/hook": {{ .Values.phase | quote }}`, Features{DeleteHooks: true}},
		{"a weight that values say", "helm.sh/hook: test\nhelm.sh/hook-weight: {{ .Values.weight | quote }}", Features{}},
		{"a comment", `{{/* .Capabilities.KubeVersion */}}`, Features{}},
		{"break and continue", `{{ range .Values.a }}{{ if . }}{{ break }}{{ else }}{{ continue }}{{ end }}{{ end }}`, Features{}},
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
	for text, want := range map[string]Features{
		"api: '{{ .Capabilities.KubeVersion }}'": {KubeVersion: true, APIVersions: true},
		"# as Capabilities do\na: 1":             {},
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
	if diff := cmp.Diff(Features{}, small().with("templates/NOTES.txt", `{{ .Capabilities.KubeVersion }}`).load(t).Features); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
