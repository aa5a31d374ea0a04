package helm

import "testing"

func TestFeatures(t *testing.T) {
	versions, apis := Features{KubeVersion: true}, Features{APIVersions: true}
	for _, test := range []struct {
		name, template string
		want           Features
	}{
		{"nothing", `{{ .Values.capabilities }}`, Features{}},
		{"text alone", "Capabilities lookup", Features{}},
		{"KubeVersion", `{{ .Capabilities.KubeVersion.Version }}`, versions},
		{"KubeVersion as an argument", `{{ if semverCompare ">=1.30" .Capabilities.KubeVersion.GitVersion }}a{{ end }}`, versions},
		{"APIVersions", `{{ if .Capabilities.APIVersions.Has "policy/v1" }}a{{ end }}`, apis},
		{"in an else", `{{ if .Values.a }}{{ else if .Values.b }}{{ else }}{{ .Capabilities.APIVersions }}{{ end }}`, apis},
		{"in a range", `{{ range .Capabilities.APIVersions }}{{ . }}{{ end }}`, apis},
		{"in a range's else", `{{ range .Values.a }}{{ else }}{{ .Capabilities.APIVersions }}{{ end }}`, apis},
		{"in a with", `{{ with .Capabilities.KubeVersion }}{{ .Major }}{{ end }}`, versions},
		{"by $", `{{ range .Values.a }}{{ $.Capabilities.KubeVersion }}{{ end }}`, versions},
		{"by a variable", `{{ $root := . }}{{ $root.Capabilities.APIVersions.Has "v1" }}`, apis},
		{"in parentheses", `{{ (.Capabilities).KubeVersion }}`, Features{KubeVersion: true, APIVersions: true}},
		{"in an assignment", `{{ $v := .Capabilities.KubeVersion.Minor }}`, versions},
		{"in a pipeline", `{{ .Capabilities.KubeVersion.Minor | int | add 1 }}`, versions},
		{"whole", `{{ toYaml .Capabilities }}`, Features{KubeVersion: true, APIVersions: true}},
		{"whole in a with", `{{ with .Capabilities }}{{ .KubeVersion }}{{ end }}`, Features{KubeVersion: true, APIVersions: true}},
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
		{"a comment", `{{/* .Capabilities.KubeVersion */}}`, Features{}},
		{"break and continue", `{{ range .Values.a }}{{ if . }}{{ break }}{{ else }}{{ continue }}{{ end }}{{ end }}`, Features{}},
	} {
		for _, name := range []string{"templates/x.yaml", "templates/_x.tpl"} {
			t.Run(test.name+" in "+name, func(t *testing.T) {
				if got := small().with(name, test.template).load(t).Features; got != test.want {
					t.Errorf("got %+v, want %+v", got, test.want)
				}
			})
		}
		t.Run(test.name+" in a subchart", func(t *testing.T) {
			c := small().
				with("charts/child/Chart.yaml", "apiVersion: v2\nname: child\nversion: 1.0.0\n").
				with("charts/child/templates/x.yaml", test.template)
			if got := c.load(t).Features; got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestFeaturesOfNotesDoNotCount(t *testing.T) {
	if got := small().with("templates/NOTES.txt", `{{ .Capabilities.KubeVersion }}`).load(t).Features; got != (Features{}) {
		t.Errorf("got %+v", got)
	}
}
