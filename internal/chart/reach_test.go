package chart

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright/internal/chart/analysis"
)

// library returns a chart with helpers as library charts have them, of which it
// uses only what the template does.
func library(template string) files {
	return small().
		with("charts/library/Chart.yaml", "apiVersion: v2\nname: library\nversion: 1.0.0\ntype: library\n").
		with("charts/library/values.yaml", "note: the library's own\n").
		with("charts/library/templates/_capabilities.tpl", `
{{- define "library.kubeVersion" -}}
{{- default (default .Capabilities.KubeVersion.Version .Values.kubeVersion) ((.Values.global).kubeVersion) -}}
{{- end -}}
{{- define "library.hasAPI" -}}
{{- $given := default .context.Values.apiVersions ((.context.Values.global).apiVersions) -}}
{{- if and (empty $given) (.context.Capabilities.APIVersions.Has .version) }}true{{ else if has .version $given }}true{{ end -}}
{{- end -}}
{{- define "library.oldHelm" -}}
{{- if regexMatch "x" (.Capabilities | toString) }}true{{ end -}}
{{- end -}}
{{- define "library.render" -}}
{{- $value := typeIs "string" .value | ternary .value (.value | toYaml) -}}
{{- if contains "{{" (toJson .value) }}{{ tpl (cat "{{- with $.scope -}}" $value "{{- end }}") (merge (dict "scope" .scope) .context) }}{{ else }}{{ $value }}{{ end -}}
{{- end -}}
{{- define "library.isOpenShift" -}}
{{- if .Capabilities.APIVersions.Has "security.openshift.io/v1" }}true{{ end -}}
{{- end -}}
`).
		with("templates/x.yaml", template)
}

func TestFeatures_OfALibraryChart(t *testing.T) {
	for template, want := range map[string]analysis.Features{
		`{{ .Values.a }}`:                       {},
		`{{ include "library.kubeVersion" . }}`: {KubeVersion: true},
		`{{ include "library.oldHelm" . }}`:     {KubeVersion: true, APIVersions: true, APIs: []string{"security.openshift.io/v1"}},
		`{{ include "library.render" (dict "value" .Values.extra "context" $) }}`:                                                                   {},
		`{{ if include "library.hasAPI" (dict "version" "policy/v1" "context" $) }}a{{ end }}{{ include "library.isOpenShift" . }}`:                 {APIs: []string{"policy/v1", "security.openshift.io/v1"}},
		`{{ if and (include "library.hasAPI" ( dict "version" "autoscaling.k8s.io/v1/VerticalPodAutoscaler" "context" . )) .Values.on }}a{{ end }}`: {APIs: []string{"autoscaling.k8s.io/v1/VerticalPodAutoscaler"}},
		`{{ include "library.hasAPI" (dict "version" .Values.api "context" $) }}`:                                                                   {APIVersions: true, APIs: []string{"security.openshift.io/v1"}},
	} {
		if diff := cmp.Diff(want, library(template).load(t).Features); diff != "" {
			t.Errorf("%s (-want +got):\n%s", template, diff)
		}
	}
}

// Texts of the chart that tpl may execute count as its templates do.
func TestFeatures_OfTextsForTpl(t *testing.T) {
	const asks = `{{ include "library.hasAPI" (dict "version" "policy/v1" "context" $) }}`
	for name, test := range map[string]struct {
		chart files
		want  analysis.Features
	}{
		"default values":                 {library(asks).with("values.yaml", `a: '{{ include "library.kubeVersion" . }}'`), analysis.Features{KubeVersion: true, APIs: []string{"policy/v1"}}},
		"a key of the default values":    {library(asks).with("values.yaml", `a: [{'{{ include "library.kubeVersion" . }}': b}]`), analysis.Features{KubeVersion: true, APIs: []string{"policy/v1"}}},
		"default values of a subchart":   {library(asks).with("charts/library/values.yaml", `a: '{{ template "library.kubeVersion" . }}'`), analysis.Features{KubeVersion: true, APIs: []string{"policy/v1"}}},
		"default values, another API":    {library(asks).with("values.yaml", `a: '{{ include "library.hasAPI" (dict "version" "b/v1") }}'`), analysis.Features{APIVersions: true, APIs: []string{"security.openshift.io/v1"}}},
		"default values without a call":  {library(asks).with("values.yaml", `a: '{{ .Release.Name }} {{ include "small.name" . }}'`), analysis.Features{APIs: []string{"policy/v1"}}},
		"a file":                         {library(asks).with("files/a.txt", `{{ include "library.kubeVersion" . }}`), analysis.Features{KubeVersion: true, APIs: []string{"policy/v1"}}},
		"a file that reads them":         {library(asks).with("files/a.txt", `{{ .Capabilities.KubeVersion }}`), analysis.Features{KubeVersion: true, APIVersions: true, APIs: []string{"security.openshift.io/v1"}}},
		"a dashboard":                    {library(asks).with("files/a.json", `{"includeAll": true, "legend": "{{pod}} {{$labels.x}}", "templating": {}}`), analysis.Features{APIs: []string{"policy/v1"}}},
		"a text that is no template yet": {library(asks).with("files/a.txt", `{{ if .a }}{{ include "library.kubeVersion" . }}`), analysis.Features{KubeVersion: true, APIs: []string{"policy/v1"}}},
		"a text that goes on elsewhere":  {library(asks).with("files/a.txt", `{{ .a }} {{ `), analysis.Features{KubeVersion: true, APIVersions: true, APIs: []string{"security.openshift.io/v1"}}},
		"the README":                     {library(asks).with("README.md", `{{ include "library.oldHelm" . }}`), analysis.Features{APIs: []string{"policy/v1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.chart.load(t).Features); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// In a chart without any other reader of .Capabilities, a text of unknown effect
// may still give the helper another API.
func TestFeatures_OfAHelperBesideAnUnknownText(t *testing.T) {
	c := small().with("templates/x.yaml", `{{ define "has" }}{{ .context.Capabilities.APIVersions.Has .version }}{{ end }}{{ include "has" (dict "version" "a/v1") }}`)
	for file, want := range map[string]analysis.Features{"a": {APIs: []string{"a/v1"}}, `{{ include .name . }}`: {APIVersions: true}} {
		if diff := cmp.Diff(want, c.with("files/a.txt", file).load(t).Features); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
}

// A custom resource can bring texts that include any helper of the chart.
func TestFeaturesOf_ValuesThatIncludeHelpers(t *testing.T) {
	c := library(`{{ include "library.render" (dict "value" .Values.extra "context" $) }}{{ include "library.isOpenShift" . }}`).load(t)
	asks := analysis.Features{APIs: []string{"security.openshift.io/v1"}}
	every := analysis.Features{KubeVersion: true, APIVersions: true, APIs: []string{"security.openshift.io/v1"}}
	for text, want := range map[string]analysis.Features{
		`Capabilities, include`:     asks,
		`{{ .Release.Name }}`:       asks,
		`{{ $labels.pod }} include`: asks,
		`{{ include "small.name" . }}-{{ include "library.render" (dict "value" "a") }}`: asks,
		`{{ include "library.kubeVersion" . }}`:                                          every,
		`{{ template "library.oldHelm" . }}`:                                             every,
		`{{ .Capabilities.APIVersions.Has "a/v1" }}`:                                     every,
		`{{ include .Values.helper . }}`:                                                 every,
		`{{ print "}}" (include "library.oldHelm" .) }}`:                                 every,
		"{{ include `library.oldHelm` . }}":                                              every,
		`{{ include "library\u002eoldHelm" . }}`:                                         every,
		strings.Repeat("{{ if (", 1<<18):                                                 every,
		"{{ " + strings.Repeat("(", 1<<21) + " }}":                                       asks,
		`{{ include "library.oldHelm" $scope }}`:                                         every,
		`{{ tpl "{{ include \"library.hasAPI\" (dict) }}" . }}`:                          every,
	} {
		for _, values := range []map[string]any{{"extra": text}, {"a": []any{map[string]any{"b": text}}}, {text: 1}} {
			if diff := cmp.Diff(want, c.FeaturesOf(values)); diff != "" {
				t.Errorf("%.200v (-want +got):\n%s", values, diff)
			}
		}
	}
	if !library(`a`).load(t).MayReadCapabilities() || small().load(t).MayReadCapabilities() {
		t.Error("a chart with a library may read .Capabilities by its values, and one without does not")
	}
}

// The digest of an existing release is the one of the previous version if the
// chart has no unused helper.
func TestFeaturesOf_KeepTheDigestOfOtherCharts(t *testing.T) {
	capabilities := NewCapabilities(serving("v1.36.0", "v1", "policy/v1"))
	for name, test := range map[string]struct {
		template, digest string
	}{
		"nothing":             {`a`, ""},
		"one API":             {`{{ .Capabilities.APIVersions.Has "policy/v1" }}`, "03efd5e077d6d0767fe3d16e71ee0d5ddd5da60a"},
		"all and KubeVersion": {`{{ define "x" }}{{ toYaml .Capabilities }}{{ end }}{{ include "x" . }}`, "df7583578a2180a668960719aae1a81967845ad3"},
		"KubeVersion":         {`{{ define "x" }}{{ .Capabilities.KubeVersion.Version }}{{ end }}{{ include "x" . }}`, "5476039bd1e29b28d580a15463c04fefee9d53d9"},
	} {
		c := small().with("templates/x.yaml", test.template).load(t)
		for _, values := range []map[string]any{nil, {"a": `{{ include "x" . }}`}} {
			if got := digest(t, capabilities, c.FeaturesOf(values)); got != test.digest {
				t.Errorf("%s: %q, want %q", name, got, test.digest)
			}
		}
	}
}
