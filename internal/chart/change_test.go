package chart

import (
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/chartwright/chartwright/internal/testenv"
)

const changedValues = `
x: false
y: true
key: x
text: "{{ .Values.x }}"
include: '{{ include "x" . }}'
empty: {}
m: {on: false, off: true, deep: {on: false}}
other: {deep: {from: other}}
list: [{on: false}]
sub: {enabled: true, on: false}
tags: {optional: true}
`

const changedHelpers = `
{{- define "x" }}{{ .Values.x }}{{ end }}
{{- define "all" }}{{ toYaml . }}{{ end }}
{{- define "context" }}{{ .context.Values.m.on }}{{ .value | toYaml }}{{ end }}
{{- define "recursive" }}{{ if .m.deep }}{{ include "recursive" (dict "m" .m.deep) }}{{ end }}{{ .m.on }}{{ end }}
{{- define "outer" }}{{ include "inner" (list $ .Values.m) }}{{ end }}
{{- define "inner" }}{{ with index . 1 }}{{ .deep.on }}{{ end }}{{ (index . 0).Values.x }}{{ end }}`

// statements holds parts of templates that read values in different ways.
var statements = []string{
	`{{ .Values.x }}`,
	`{{ $.Values.x }}`,
	`{{ if .Values.x }}on{{ else if .Values.m.on }}second{{ else }}{{ .Values.m.deep.on }}{{ end }}`,
	`{{ with .Values.m }}{{ .on }}{{ with .deep }}{{ .on }}{{ end }}{{ end }}`,
	`{{ with .Values.missing }}{{ . }}{{ else }}{{ .Values.x }}{{ end }}`,
	`{{ range $key, $value := .Values.m }}{{ $key }}{{ end }}`,
	`{{ range .Values.list }}{{ .on }}{{ end }}`,
	`{{ range .Values.m }}{{ . }}{{ end }}`,
	`{{ range $i, $e := list .Values.m .Values.other }}{{ $e.deep.on }}{{ end }}`,
	`{{ range $key := list "x" "y" }}{{ get $.Values $key }}{{ end }}`,
	`{{ $v := .Values }}{{ $v.x }}{{ $m := $v.m }}{{ $m.deep.on }}`,
	`{{ $m := .Values.m }}{{ if .Values.y }}{{ $m = .Values.other }}{{ end }}{{ $m.deep.on }}`,
	`{{ toYaml .Values.m | nindent 4 }}`,
	`{{ .Values.m | toJson }}`,
	`{{ .Values.m }}`,
	`{{ .Values }}`,
	`{{ printf "%v" .Values.m }}`,
	`{{ print .Values.x .Values.m.deep }}`,
	`{{ .Values.YAML }}`,
	`{{ .Values.AsMap.x }}`,
	`{{ (.Values.Table "m").on }}`,
	`{{ index .Values "x" }}`,
	`{{ index .Values "m" "deep" "on" }}`,
	`{{ index .Values .Values.key }}`,
	`{{ $key := "m" }}{{ (index .Values $key).on }}`,
	`{{ "on" | index .Values.m }}`,
	`{{ index .Values (printf "%s" "x") }}`,
	`{{ (index .Values.list 0).on }}`,
	`{{ get .Values "x" }}`,
	`{{ (get .Values "m").deep.on }}`,
	`{{ hasKey .Values "missing" }}`,
	`{{ dig "m" "deep" "on" "none" .Values.AsMap }}`,
	`{{ pluck "on" .Values.m .Values.m.deep }}`,
	`{{ pick .Values.m "on" | toJson }}`,
	`{{ omit .Values.m "on" | toJson }}`,
	`{{ keys .Values.m | sortAlpha }}`,
	`{{ values .Values.m | len }}`,
	`{{ len .Values.m }}`,
	`{{ .Values.m | len }}`,
	`{{ len .Values.empty }}`,
	`{{ not .Values.empty }}`,
	`{{ empty .Values.empty }}`,
	`{{ kindOf .Values.m }}`,
	`{{ typeIs "bool" .Values.x }}`,
	`{{ or .Values.empty .Values.m | toJson }}`,
	`{{ and .Values.y .Values.m | toJson }}`,
	`{{ eq .Values.x .Values.y }}`,
	`{{ ne (toString .Values.x) "true" }}`,
	`{{ deepEqual .Values.m .Values.other }}`,
	`{{ (default .Values.other .Values.empty).deep.from }}`,
	`{{ .Values.empty | default .Values.m | toJson }}`,
	`{{ (coalesce .Values.empty .Values.m).on }}`,
	`{{ ternary .Values.m .Values.other .Values.x | toJson }}`,
	`{{ (required "m is required" .Values.m).on }}`,
	`{{ (dict "a" .Values.m).a.on }}`,
	`{{ dict "a" (list .Values.m) | toJson }}`,
	`{{ (first (list .Values.m)).on }}`,
	`{{ (concat (list .Values.m) (list .Values.other) | last).deep.on }}`,
	`{{ append (list 1) .Values.m | toJson }}`,
	`{{ deepCopy .Values.m | toJson }}`,
	`{{ merge (dict) .Values.m | toJson }}`,
	`{{ mergeOverwrite (dict "on" 1) .Values.m .Values.other | toJson }}`,
	`{{ include "x" . }}`,
	`{{ template "x" . }}`,
	`{{ include "all" .Values.m }}`,
	`{{ include "all" (dict "a" .Values.m) }}`,
	`{{ include "context" (dict "context" $ "value" .Values.other) }}`,
	`{{ include "recursive" .Values }}`,
	`{{ include "outer" . }}`,
	`{{ tpl .Values.text . }}`,
	`{{ tpl .Values.include . }}`,
	`{{ tpl "{{ .m.on }}" (dict "m" .Values.m "Template" .Template) }}`,
	`{{ .Values.x | ternary "a" "b" | upper }}`,
	`{{ if and .Values.y (or .Values.x (not .Values.m.off)) }}on{{ end }}`,
	`{{ block "own" .Values.m }}{{ .on }}{{ end }}`,
	`{{ define "late" }}{{ .m.deep.on }}{{ end }}{{ include "late" .Values }}`,
	`{{ .Values.x.y }}`,
	`{{ fail (ternary "x" "" .Values.x) }}`,
	`{{ if .Values.x }}{{ fail "x" }}{{ end }}{{ .Values.m.on }}`,
	`{{ if .Values.x }}{{ "- [" }}{{ end }}{{ .Values.m.on }}`,
	`{{ .Values.sub.on }}`,
	`{{ .Subcharts.sub.Values.on }}`,
	`{{ hasKey .Subcharts "sub" }}`,
	`{{ hasKey .Subcharts "optional" }}`,
	`{{ .Values.global }}`,
	// Templates that change values, or other values that templates read.
	`{{ $_ := set .Values "y" .Values.x }}`,
	`{{ $_ := set .Values.m "on" "set" }}`,
	`{{ if .Values.x }}{{ $_ := set .Values "y" "set" }}{{ end }}`,
	`{{ if .Values.x }}{{ $_ := unset .Values "y" }}{{ end }}`,
	`{{ if .Values.x }}{{ $_ := set . "own" "set" }}{{ end }}`,
	`{{ if .Values.x }}{{ $_ := set .Release "own" "set" }}{{ end }}`,
	`{{ if .Values.x }}{{ $_ := set .Subcharts.sub "own" "set" }}{{ end }}`,
	`{{ if .Values.x }}{{ $_ := merge .Values.m .Values.other }}{{ end }}`,
	`{{ $_ := merge (dict) .Values .Values.other }}`,
	`{{ $_ := mergeOverwrite (dict "deep" (dict)) .Values.m .Values.other }}`,
}

// changes holds values that differ from changedValues.
var changes = []map[string]any{
	{"x": true},
	{"x": nil},
	{"x": "text"},
	{"x": map[string]any{"y": true}},
	{"y": false},
	{"key": "y"},
	{"text": "{{ .Values.m.on }}"},
	{"empty": map[string]any{"on": true}},
	{"m": map[string]any{"on": true}},
	{"m": map[string]any{"off": false}},
	{"m": map[string]any{"deep": map[string]any{"on": true}}},
	{"m": map[string]any{"deep": map[string]any{"added": true}}},
	{"m": map[string]any{"deep": nil}},
	{"m": map[string]any{"added": true}},
	{"m": nil},
	{"m": "text"},
	{"other": map[string]any{"deep": map[string]any{"on": true}}},
	{"list": []any{map[string]any{"on": true}}},
	{"list": []any{}},
	{"missing": true},
	{"sub": map[string]any{"on": true}},
	{"sub": map[string]any{"enabled": false}},
	{"tags": map[string]any{"optional": false}},
	{"global": map[string]any{"g": true}},
}

// changedChart returns a chart with a statement in its first template.
func changedChart(t *testing.T, statement string) *Chart {
	t.Helper()
	object := func(value string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  value: |\n    " + value + "\n"
	}
	files := fstest.MapFS{}
	for name, text := range map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies:\n" +
			"- {name: sub, version: 1.0.0, condition: sub.enabled}\n- {name: optional, version: 1.0.0, tags: [optional]}\n",
		"values.yaml":            changedValues,
		"templates/_helpers.tpl": changedHelpers,
		// The last template is executed first.
		"templates/z.yaml":                 object(statement),
		"templates/b.yaml":                 object("{{ .Values.y }}{{ .Values.m }}{{ .own }}{{ .Release.own }}{{ (default dict .Subcharts.sub).own }}"),
		"templates/constant.yaml":          object("constant"),
		"charts/sub/Chart.yaml":            "apiVersion: v2\nname: sub\nversion: 1.0.0\n",
		"charts/sub/values.yaml":           "on: false\nown: {a: false}\n",
		"charts/sub/templates/a.yaml":      object("{{ .Values.on }}{{ .Values.global.g }}{{ .own }}"),
		"charts/optional/Chart.yaml":       "apiVersion: v2\nname: optional\nversion: 1.0.0\n",
		"charts/optional/values.yaml":      "{}\n",
		"charts/optional/templates/a.yaml": object("{{ .Values.global.g }}"),
	} {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	chart, err := LoadDir(files)
	if err != nil {
		t.Fatal(err)
	}
	return chart
}

// Change finds the same objects as a render of all templates.
func TestChange_FindsObjectsOfRender(t *testing.T) {
	log.SetOutput(io.Discard)
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
	for i, statement := range statements {
		t.Run(statement, func(t *testing.T) {
			t.Parallel()
			chart := changedChart(t, statement)
			survey := func() *Survey {
				survey, err := chart.Survey(Offline{Release: "web", Namespace: "apps"})
				if err != nil {
					t.Fatal(err)
				}
				return survey
			}
			selective, exhaustive := survey(), survey()
			base, found, err := selective.Base(nil)
			want, wantErr := exhaustive.Render(nil)
			compareFound(t, "base", found, err, want, wantErr, nil)
			// In make check, each statement has a third of the changes.
			step := testenv.Attempts(3, 1)
			for at := i % step; at < len(changes); at += step {
				change := changes[at]
				found, err := base.Change(copyOf(change))
				want, wantErr := exhaustive.Render(copyOf(change))
				compareFound(t, fmt.Sprint(change), found, err, want, wantErr, nil)
			}
		})
	}
}

// compareFound compares the result of Change with that of Render. If they differ, it
// ignores the templates that random returns, unless it is nil.
func compareFound(t *testing.T, what string, got Found, err error, want Found, wantErr error, random func() sets.Set[string]) {
	t.Helper()
	if errors.Is(err, ErrRender) != errors.Is(wantErr, ErrRender) || (err == nil) != (wantErr == nil) {
		t.Errorf("%s: got error %v, want %v", what, err, wantErr)
	}
	var ignored sets.Set[string]
	texts := func(found Found) (all []string) {
		for _, object := range slices.Concat(found.Objects, found.Hooks) {
			if !ignored.Has(object.Source) {
				all = append(all, fmt.Sprint(object.Source, object.Object, object.Events))
			}
		}
		return all
	}
	if random != nil && !slices.Equal(texts(want), texts(got)) {
		ignored = random()
	}
	if diff := cmp.Diff(texts(want), texts(got)); diff != "" {
		t.Errorf("%s: objects (-Render +Change):\n%s", what, diff)
	}
}

// The objects of a render whose last file cannot be decoded are found by a later render.
func TestSurvey_FindsObjectsAfterFailedRender(t *testing.T) {
	chart := changedChart(t, `{{ if .Values.x }}{{ "- [" }}{{ end }}`+"\n  {{ if .Values.x }}- [{{ end }}")
	survey, err := chart.Survey(Offline{Release: "web", Namespace: "apps"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := survey.Render(map[string]any{"x": true}); !errors.Is(err, ErrRender) {
		t.Fatalf("got error %v, want one of the render", err)
	}
	found, err := survey.Render(nil)
	if err != nil || len(found.Objects) != 5 {
		t.Errorf("got %d objects, error %v; want 5", len(found.Objects), err)
	}
}

// Change executes only the templates that read a changed value.
func TestChange_ExecutesAffectedTemplates(t *testing.T) {
	for _, test := range []struct {
		statement string
		change    map[string]any
		want      string
	}{
		{`{{ .Values.x }}`, map[string]any{"x": true}, "z"},
		{`{{ .Values.x }}`, map[string]any{"y": false}, "b"},
		{`{{ .Values.x }}`, map[string]any{"key": "y"}, ""},
		{`{{ .Values.x }}`, map[string]any{"sub": map[string]any{"on": true}}, "sub"},
		{`{{ .Values.x }}`, map[string]any{"m": map[string]any{"on": true}}, "b"},
		{`{{ .Values.m.on }}`, map[string]any{"m": map[string]any{"on": true}}, "b z"},
		{`{{ .Values.m.on }}`, map[string]any{"m": map[string]any{"deep": map[string]any{"on": true}}}, "b"},
		{`{{ with .Values.other }}{{ .deep.on }}{{ end }}`, map[string]any{"other": map[string]any{"deep": map[string]any{"on": true}}}, "z"},
		{`{{ with .Values.other }}{{ .deep.on }}{{ end }}`, map[string]any{"other": map[string]any{"a": true}}, ""},
		{`{{ include "outer" . }}`, map[string]any{"key": "y"}, ""},
		{`{{ include "context" (dict "context" $ "value" .Values.other) }}`, map[string]any{"key": "y"}, ""},
		{`{{ tpl .Values.text . }}`, map[string]any{"x": true}, "z"},
		{`{{ tpl .Values.text . }}`, map[string]any{"key": "y"}, ""},
		{`{{ index .Values .Values.key }}`, map[string]any{"list": []any{}}, ""},
		{`{{ (get .Values "other").deep.from }}`, map[string]any{"list": []any{}}, ""},
		{`{{ dict "a" (default .Values.list .Values.other) | toJson }}`, map[string]any{"key": "y"}, ""},
		{`{{ .Release.Name }}{{ .Chart.Name }}{{ .Template.Name }}{{ .Capabilities.KubeVersion }}{{ .Files.Get "a" }}`, map[string]any{"x": true}, ""},
	} {
		chart := changedChart(t, test.statement)
		survey, err := chart.Survey(Offline{Release: "web", Namespace: "apps"})
		if err != nil {
			t.Fatal(err)
		}
		base, _, err := survey.Base(nil)
		if err != nil || !base.traced {
			t.Fatalf("%s: traced %t, error %v", test.statement, base.traced, err)
		}
		e, err := survey.prepare(test.change)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, name := range sets.List(base.trace.Affected(base.values, e.in.values)) {
			name = strings.TrimPrefix(strings.TrimSuffix(name, ".yaml"), "web/")
			name = strings.TrimPrefix(name, "templates/")
			if strings.HasPrefix(name, "charts/") {
				name = strings.Split(name, "/")[1]
			}
			got = append(got, name)
		}
		slices.Sort(got)
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s with %v: got %q, want %q", test.statement, test.change, strings.Join(got, " "), test.want)
		}
	}
}
