package chart

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright/internal/chart/analysis"
)

// library returns a chart that consists of the template and a library chart with typical
// helpers.
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

func TestFeatures_OfLibraryChart(t *testing.T) {
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

// The analysis includes default values and files of the chart, because tpl may execute them.
func TestFeatures_OfTemplatesInValuesAndFiles(t *testing.T) {
	const template = `{{ include "library.hasAPI" (dict "version" "policy/v1" "context" $) }}`
	for name, test := range map[string]struct {
		chart files
		want  analysis.Features
	}{
		"default values":                 {library(template).with("values.yaml", `a: '{{ include "library.kubeVersion" . }}'`), analysis.Features{KubeVersion: true, APIs: []string{"policy/v1"}}},
		"a key of the default values":    {library(template).with("values.yaml", `a: [{'{{ include "library.kubeVersion" . }}': b}]`), analysis.Features{KubeVersion: true, APIs: []string{"policy/v1"}}},
		"default values of a subchart":   {library(template).with("charts/library/values.yaml", `a: '{{ template "library.kubeVersion" . }}'`), analysis.Features{KubeVersion: true, APIs: []string{"policy/v1"}}},
		"default values, another API":    {library(template).with("values.yaml", `a: '{{ include "library.hasAPI" (dict "version" "b/v1") }}'`), analysis.Features{APIVersions: true, APIs: []string{"security.openshift.io/v1"}}},
		"default values without a call":  {library(template).with("values.yaml", `a: '{{ .Release.Name }} {{ include "small.name" . }}'`), analysis.Features{APIs: []string{"policy/v1"}}},
		"a file":                         {library(template).with("files/a.txt", `{{ include "library.kubeVersion" . }}`), analysis.Features{KubeVersion: true, APIs: []string{"policy/v1"}}},
		"a file with .Capabilities":      {library(template).with("files/a.txt", `{{ .Capabilities.KubeVersion }}`), analysis.Features{KubeVersion: true, APIVersions: true, APIs: []string{"security.openshift.io/v1"}}},
		"a dashboard with other braces":  {library(template).with("files/a.json", `{"includeAll": true, "legend": "{{pod}} {{$labels.x}}", "templating": {}}`), analysis.Features{APIs: []string{"policy/v1"}}},
		"a file with an unclosed if":     {library(template).with("files/a.txt", `{{ if .a }}{{ include "library.kubeVersion" . }}`), analysis.Features{KubeVersion: true, APIs: []string{"policy/v1"}}},
		"a file with an unclosed action": {library(template).with("files/a.txt", `{{ .a }} {{ `), analysis.Features{KubeVersion: true, APIVersions: true, APIs: []string{"security.openshift.io/v1"}}},
		"the README":                     {library(template).with("README.md", `{{ include "library.oldHelm" . }}`), analysis.Features{APIs: []string{"policy/v1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.chart.load(t).Features); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A file that includes a computed helper could pass any API to a helper of the chart.
func TestFeatures_OfHelperThatFileMayInclude(t *testing.T) {
	c := small().with("templates/x.yaml", `{{ define "has" }}{{ .context.Capabilities.APIVersions.Has .version }}{{ end }}{{ include "has" (dict "version" "a/v1") }}`)
	for file, want := range map[string]analysis.Features{"a": {APIs: []string{"a/v1"}}, `{{ include .name . }}`: {APIVersions: true}} {
		if diff := cmp.Diff(want, c.with("files/a.txt", file).load(t).Features); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
}

// Values of a custom resource can contain templates that include any helper of the chart.
func TestFeaturesOf_ValuesThatIncludeHelpers(t *testing.T) {
	t.Parallel()
	c := library(`{{ include "library.render" (dict "value" .Values.extra "context" $) }}{{ include "library.isOpenShift" . }}`).load(t)
	ofChart := analysis.Features{APIs: []string{"security.openshift.io/v1"}}
	every := analysis.Features{KubeVersion: true, APIVersions: true, APIs: []string{"security.openshift.io/v1"}}
	for text, want := range map[string]analysis.Features{
		`Capabilities, include`:     ofChart,
		`{{ .Release.Name }}`:       ofChart,
		`{{ $labels.pod }} include`: ofChart,
		`{{ include "small.name" . }}-{{ include "library.render" (dict "value" "a") }}`: ofChart,
		`{{ include "library.kubeVersion" . }}`:                                          every,
		`{{ template "library.oldHelm" . }}`:                                             every,
		`{{ .Capabilities.APIVersions.Has "a/v1" }}`:                                     every,
		`{{ include .Values.helper . }}`:                                                 every,
		`{{ print "}}" (include "library.oldHelm" .) }}`:                                 every,
		"{{ include `library.oldHelm` . }}":                                              every,
		`{{ include "library\u002eoldHelm" . }}`:                                         every,
		strings.Repeat("{{ if (", 1<<18):                                                 every,
		"{{ " + strings.Repeat("(", 1<<21) + " }}":                                       ofChart,
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
		t.Error("MayReadCapabilities: got false for a chart with unused helpers, or true for a chart without")
	}
}

// If a chart has no unused helpers, its digest must not differ between versions of the
// operator, because a new digest upgrades all releases.
func TestFeaturesOf_DigestIsStableAcrossVersions(t *testing.T) {
	capabilities := NewCapabilities(discoveryOf("v1.36.0", "v1", "policy/v1"))
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
				t.Errorf("%s: got digest %q, want %q", name, got, test.digest)
			}
		}
	}
}
