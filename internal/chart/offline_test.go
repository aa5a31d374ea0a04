package chart_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright/internal/chart"
)

func offlineChart(t *testing.T) *chart.Chart {
	t.Helper()
	fsys := fstest.MapFS{}
	for name, text := range map[string]string{
		"Chart.yaml":             "apiVersion: v2\nname: box\nversion: 1.0.0\n",
		".helmignore":            "ci/\n",
		"ci/big-values.yaml":     "size: 2.0\n",
		"values.yaml":            "size: 1\n",
		"values.schema.json":     `{"properties": {"size": {"type": "integer"}}}`,
		"crds/a.yaml":            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: as.example.com}\n---\nkind: Other\n",
		"templates/list.yaml":    "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: {{ .Release.Name }}-a}\n- apiVersion: v1\n  kind: Secret\n  metadata: {name: b}\n",
		"templates/hook.yaml":    "apiVersion: v1\nkind: Pod\nmetadata:\n  name: hook\n  annotations:\n    helm.sh/hook: pre-install,pre-upgrade\n    helm.sh/hook-delete-policy: hook-succeeded\n",
		"templates/asks.yaml":    "{{ if .Capabilities.APIVersions.Has \"example.com/v1\" }}\napiVersion: example.com/v1\nkind: Thing\nmetadata: {name: {{ .Capabilities.KubeVersion.Minor | quote }}, size: {{ .Values.size }}}\n{{ end }}",
		"templates/looks.yaml":   "{{ if lookup \"v1\" \"Secret\" \"a\" \"b\" }}{{ fail \"found\" }}{{ end }}",
		"templates/NOTES.txt":    "size {{ .Values.size }} in {{ .Release.Namespace }}",
		"templates/_helpers.tpl": `{{ define "x" }}{{ end }}`,
	} {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	loaded, err := chart.LoadDir(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

func TestRenderOffline(t *testing.T) {
	loaded := offlineChart(t)
	rendered, err := loaded.Render(chart.Offline{
		Release: "web", Namespace: "shop", Values: map[string]any{"size": int64(3)},
		APIVersions: []string{"example.com/v1"}, KubeVersion: "v1.29.0",
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, object := range rendered.Objects {
		got = append(got, object.Source+" "+object.GetKind()+" "+object.GetName())
	}
	want := []string{"templates/list.yaml ConfigMap web-a", "templates/list.yaml Secret b", "templates/asks.yaml Thing 29"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	if rendered.Notes != "size 3 in shop" {
		t.Errorf("notes %q", rendered.Notes)
	}
	if len(rendered.Hooks) != 1 {
		t.Fatalf("hooks %v", rendered.Hooks)
	}
	hook := rendered.Hooks[0]
	if hook.Source != "templates/hook.yaml" || !slices.Equal(hook.Events, []string{"pre-install", "pre-upgrade"}) || !slices.Equal(hook.DeletePolicies, []string{"hook-succeeded"}) {
		t.Errorf("hook %+v", hook)
	}
}

func TestRenderOfflineRefuses(t *testing.T) {
	loaded := offlineChart(t)
	bad := func() map[string]any { return map[string]any{"size": "much"} }
	if _, err := loaded.Render(chart.Offline{Release: "web", Values: bad()}); !errors.Is(err, chart.ErrInvalidValues) || !strings.Contains(err.Error(), "spec.size") {
		t.Errorf("a text for a number: %v", err)
	}
	if _, err := loaded.Render(chart.Offline{Release: "web", Values: bad(), Unchecked: true}); err != nil {
		t.Errorf("unchecked: %v", err)
	}
	if _, err := loaded.Render(chart.Offline{Release: "web", KubeVersion: "new"}); err == nil || !strings.Contains(err.Error(), `"new"`) {
		t.Errorf("a version that is none: %v", err)
	}
}

func TestWhatAChartHolds(t *testing.T) {
	loaded := offlineChart(t)
	crds, err := loaded.CRDs()
	if err != nil || len(crds) != 1 || crds[0].GetName() != "as.example.com" || crds[0].Source != "crds/a.yaml" {
		t.Errorf("CRDs %v, %v", crds, err)
	}
	examples, err := loaded.Examples()
	if diff := cmp.Diff(map[string]map[string]any{"ci/big-values.yaml": {"size": int64(2)}}, examples); diff != "" || err != nil {
		t.Errorf("examples (-want +got):\n%s%v", diff, err)
	}
	paths := map[string]bool{}
	for _, file := range loaded.Templates() {
		paths[file.Path] = true
	}
	want := []string{"templates/_helpers.tpl", "templates/asks.yaml", "templates/hook.yaml", "templates/list.yaml", "templates/looks.yaml"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(paths))); diff != "" {
		t.Errorf("templates (-want +got):\n%s", diff)
	}
}
