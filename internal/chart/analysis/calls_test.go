package analysis_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright/internal/chart/analysis"
)

// parsed returns the parsed files of these pairs of paths and contents.
func parsed(t *testing.T, pairs ...string) []analysis.File {
	t.Helper()
	var files []analysis.File
	for pair := range slices.Chunk(pairs, 2) {
		file, err := analysis.Parse(pair[0], pair[1])
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

func TestReadCalls_FindsFunctionsAndFields(t *testing.T) {
	calls := analysis.ReadCalls(parsed(t,
		"templates/_a.tpl", `{{ define "a" }}{{ .Values.b.c }}{{ end }}{{ define "unused" }}{{ now }}{{ end }}`,
		"charts/x/templates/a.yaml", `{{ $top := . }}{{ include "a" $ | default (lookup "v1" "Secret" $top.Release.Namespace "d") }}
{{ template "a" . }}`,
	))
	var got []string
	for _, call := range calls.All {
		got = append(got, fmt.Sprintf("%s:%d %s %d %t", call.Template, call.Line(), call.Name, len(call.Args), calls.Executed(call.Template)))
	}
	want := []string{
		"a:1 Values.b.c 0 true",
		"unused:1 now 0 false",
		"charts/x/templates/a.yaml:1 include 2 true",
		"charts/x/templates/a.yaml:1 default 1 true",
		"charts/x/templates/a.yaml:1 lookup 4 true",
		"charts/x/templates/a.yaml:1 Release.Namespace 0 true",
		"charts/x/templates/a.yaml:2 template 1 true",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := calls.Named("lookup", 4); len(got) != 1 || !slices.Equal(got[0].File.Subcharts(), []string{"x"}) {
		t.Errorf("got lookups %v, want one in subchart x", got)
	}
}

func TestCallsKept_ByLookupValueOrCaller(t *testing.T) {
	isSet := func(_ analysis.File, path string) bool { return path == "set" }
	for template, want := range map[string]bool{
		`{{ uuidv4 }}`:                                                                   false,
		`{{ .Values.set | default uuidv4 }}`:                                             true,
		`{{ .Values.unset | default uuidv4 }}`:                                           false,
		`{{ if not .Values.set }}{{ uuidv4 }}{{ end }}`:                                  true,
		`{{ if lookup "v1" "Secret" "a" "b" }}{{ else }}{{ uuidv4 }}{{ end }}`:           true,
		`{{ define "a" }}{{ uuidv4 }}{{ end }}{{ default (include "a" .) .Values.set }}`: true,
		`{{ define "a" }}{{ uuidv4 }}{{ end }}{{ include "a" . }}`:                       false,
	} {
		calls := analysis.ReadCalls(parsed(t, "templates/a.yaml", template))
		if got := calls.Kept(calls.Named("uuidv4", 0)[0], isSet); got != want {
			t.Errorf("%s: got kept %t, want %t", template, got, want)
		}
	}
}

func TestEvaluator_ReturnsDocumentsOfAllBranches(t *testing.T) {
	files := parsed(t,
		"templates/_a.tpl", `{{ define "kind" }}{{ if .Values.daemon }}DaemonSet{{ else }}Deployment{{ end }}{{ end }}`,
		"templates/a.yaml", "apiVersion: apps/v1\nkind: {{ include \"kind\" . }}\n---\n{{ with .Values.api }}apiVersion: {{ . }}{{ end }}\nkind: Widget\n---\n{{ toYaml .Values.extra }}\n",
	)
	enum := func(path []string) ([]any, bool) {
		return []any{"a.test/v1", "b.test/v1"}, slices.Equal(path, []string{"api"})
	}
	var got []string
	for _, document := range analysis.NewEvaluator(files, nil, enum).Documents() {
		for _, o := range document.Objects() {
			got = append(got, fmt.Sprintf("%s %s %s:%d", o.APIVersion, o.Kind, o.File, o.Line))
		}
		for _, o := range document.Opaque {
			got = append(got, fmt.Sprintf("%s %s:%d", o.Text, o.File, o.Line))
		}
	}
	want := []string{
		"apps/v1 DaemonSet templates/a.yaml:2", "apps/v1 Deployment templates/a.yaml:2",
		"a.test/v1 Widget templates/a.yaml:5", "b.test/v1 Widget templates/a.yaml:5",
		"{{ toYaml .Values.extra }} templates/a.yaml:7",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
