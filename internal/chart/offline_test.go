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
		"templates/objects.yaml": "{{ if .Capabilities.APIVersions.Has \"example.com/v1\" }}\napiVersion: example.com/v1\nkind: Thing\nmetadata: {name: {{ .Capabilities.KubeVersion.Minor | quote }}, size: {{ .Values.size }}}\n{{ end }}",
		"templates/query.yaml":   "{{ if lookup \"v1\" \"Secret\" \"a\" \"b\" }}{{ fail \"found\" }}{{ end }}",
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

func TestRender_ReturnsObjectsHooksAndNotes(t *testing.T) {
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
	want := []string{"templates/list.yaml ConfigMap web-a", "templates/list.yaml Secret b", "templates/objects.yaml Thing 29"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	if rendered.Notes != "size 3 in shop" {
		t.Errorf("got notes %q", rendered.Notes)
	}
	if len(rendered.Hooks) != 1 {
		t.Fatalf("got hooks %v, want one", rendered.Hooks)
	}
	hook := rendered.Hooks[0]
	if hook.Source != "templates/hook.yaml" || !slices.Equal(hook.Events, []string{"pre-install", "pre-upgrade"}) || !slices.Equal(hook.DeletePolicies, []string{"hook-succeeded"}) {
		t.Errorf("got hook %+v", hook)
	}
}

func TestRender_RejectsInvalidInput(t *testing.T) {
	loaded := offlineChart(t)
	invalid := func() map[string]any { return map[string]any{"size": "much"} }
	if _, err := loaded.Render(chart.Offline{Release: "web", Values: invalid()}); !errors.Is(err, chart.ErrInvalidValues) || !strings.Contains(err.Error(), "spec.size") {
		t.Errorf("string instead of integer: got error %v, want ErrInvalidValues at spec.size", err)
	}
	if _, err := loaded.Render(chart.Offline{Release: "web", Values: invalid(), Unchecked: true}); err != nil {
		t.Errorf("invalid values without validation: got error %v", err)
	}
	if _, err := loaded.Render(chart.Offline{Release: "web", KubeVersion: "new"}); err == nil || !strings.Contains(err.Error(), `"new"`) {
		t.Errorf("invalid Kubernetes version: got error %v, want one with the version", err)
	}
}

func TestChart_ReturnsCRDsExamplesAndTemplates(t *testing.T) {
	loaded := offlineChart(t)
	crds, err := loaded.CRDs()
	if err != nil || len(crds) != 1 || crds[0].GetName() != "as.example.com" || crds[0].Source != "crds/a.yaml" {
		t.Errorf("got CRDs %v, error %v", crds, err)
	}
	examples, err := loaded.Examples()
	if diff := cmp.Diff(map[string]map[string]any{"ci/big-values.yaml": {"size": int64(2)}}, examples); diff != "" || err != nil {
		t.Errorf("examples (-want +got):\n%s%v", diff, err)
	}
	paths := map[string]bool{}
	for _, file := range loaded.Templates() {
		paths[file.Path] = true
	}
	want := []string{"templates/_helpers.tpl", "templates/hook.yaml", "templates/list.yaml", "templates/objects.yaml", "templates/query.yaml"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(paths))); diff != "" {
		t.Errorf("templates (-want +got):\n%s", diff)
	}
}
