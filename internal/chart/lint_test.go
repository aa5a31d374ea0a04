package chart_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/release"
)

// loadFiles loads a chart from a map of paths to contents.
func loadFiles(t *testing.T, files map[string]string) *chart.Chart {
	t.Helper()
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	loaded, err := chart.LoadDir(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// Lint returns Helm's messages with paths relative to the chart, and deletes its temporary
// folder.
func TestLint_ReturnsHelmMessagesWithChartPaths(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	loaded := loadFiles(t, map[string]string{
		"Chart.yaml":                "apiVersion: v2\nname: box\nversion: 1.0.0\nappVersion: 1.5\n",
		"values.schema.json":        `{"required": ["size"]}`,
		"templates/a.yaml":          "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: Not_A_Name\n",
		"templates/b.md":            "text",
		"charts/sub/Chart.yaml":     "apiVersion: v2\nname: sub\nversion: 1.0.0\n",
		"charts/sub/notes/a.txt":    "text",
		"notes/b.txt":               "text",
		"templates/sub/c/deep.yaml": "{{ .Values.size }}: 1",
	})
	messages, err := loaded.Lint(map[string]any{"size": "x"}, "shop")
	if err != nil {
		t.Fatal(err)
	}
	got := make([]string, len(messages))
	for i, m := range messages {
		text, _, _ := strings.Cut(m.Message, "\n")
		got[i] = fmt.Sprintf("%v %s: %.60s", m.Error, m.Path, text)
	}
	want := []string{
		"true Chart.yaml: appVersion should be of type string but it's of type float64",
		"false templates/a.yaml: object name does not conform to Kubernetes naming requiremen",
		"true templates/b.md: file extension '.md' not valid. Valid extensions are .yaml, ",
		"false templates/sub/c/deep.yaml: object name does not conform to Kubernetes naming requiremen",
		"true Chart.yaml: chart metadata is missing these dependencies: sub",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("temporary files were not deleted: %v, %v", left, err)
	}
	if diff := cmp.Diff([]string{"notes/b.txt", "charts/sub/notes/a.txt"}, loaded.Files()); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if got := string(loaded.File("notes/b.txt")); got != "text" || loaded.File("none") != nil {
		t.Errorf("got file %q and missing file %q", got, loaded.File("none"))
	}
}

// RecordSize returns the size of the compressed record, also if it exceeds the limit of a
// Secret.
func TestRecordSize_HasNoLimit(t *testing.T) {
	t.Parallel()
	var sizes []int
	for _, size := range []int{1, 3 << 19} {
		loaded := loadFiles(t, map[string]string{
			"Chart.yaml":       "apiVersion: v2\nname: box\nversion: 1.0.0\n",
			"templates/a.yaml": fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: {{ randBytes %d }}}", size),
		})
		rendered, err := loaded.Render(chart.Offline{Release: "web", Namespace: "shop"})
		if err != nil {
			t.Fatal(err)
		}
		got, err := release.RecordSize(rendered)
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, got)
	}
	if sizes[0] < 200 || sizes[0] > 2000 || sizes[1] < 3<<19 {
		t.Errorf("got sizes %v, want about 1 kB and more than 1.5 MiB", sizes)
	}
}

// Helm would render for Kubernetes v1.20 by default, which many charts reject.
func TestRender_DefaultsToCurrentKubernetesVersion(t *testing.T) {
	loaded := loadFiles(t, map[string]string{
		"Chart.yaml":       "apiVersion: v2\nname: box\nversion: 1.0.0\nkubeVersion: '>=1.30.0'\n",
		"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 'v{{ .Capabilities.KubeVersion.Minor }}'}\n",
		"templates/b.yaml": "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: a}\n",
	})
	rendered, err := loaded.Render(chart.Offline{Release: "web", Namespace: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range rendered.Objects {
		if o.GetKind() == "ConfigMap" && o.GetName() < "v37" {
			t.Errorf("got minor version %s, want v37 or newer", o.GetName())
		}
	}
	messages, err := loaded.Lint(nil, "shop")
	if err != nil {
		t.Fatal(err)
	}
	if len(messages) != 1 || !strings.Contains(messages[0].Message, "policy/v1beta1 PodDisruptionBudget is deprecated") {
		t.Errorf("got messages %v, want only the deprecation", messages)
	}
}
