package catalog_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/watches"
)

// chart returns the files of a small chart.
func chart(name string) map[string]string {
	return map[string]string{
		"Chart.yaml":             "apiVersion: v2\nname: " + name + "\nversion: 1.2.3\n",
		"templates/_helpers.tpl": `{{ define "name" }}{{ .Release.Name }}{{ end }}`,
		"templates/config.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ include \"name\" . }}}\n",
	}
}

// write writes files to a folder.
func write(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		name = filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// archive packs a chart as helm package does.
func archive(t *testing.T, name string, files map[string]string) []byte {
	t.Helper()
	var packed bytes.Buffer
	gz := gzip.NewWriter(&packed)
	tw := tar.NewWriter(gz)
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if err := tw.WriteHeader(&tar.Header{Name: name + "/" + file, Mode: 0o644, Size: int64(len(files[file])), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := tw.Write([]byte(files[file])); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []interface{ Close() error }{tw, gz} {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return packed.Bytes()
}

func entry(kind, chart string, more ...string) string {
	return "- version: v1\n  kind: " + kind + "\n  chart: " + chart + "\n" + strings.Join(more, "")
}

func TestFromFS_EmbeddedFiles(t *testing.T) {
	kinds, err := catalog.FromFS(chartwright.Files, chartwright.WatchesFile)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, k := range kinds {
		got[k.GVK().GroupKind().String()] = k.Chart.Name()
	}
	want := map[string]string{
		"PodSet.app.example.com":                  "podset",
		"OvhNginx.tutorials.ovhcloud.com":         "ovhnginx",
		"Database.stable.imaginedata.com":         "database",
		"Experimental.experiments.vapourware.com": "experimental",
		"VmGroup.vm.codeconnect.vmworld.com":      "vmgroup",
		"Config.operator.example.com":             "config",
		"Addon.operator.example.com":              "addon",
		"ClusterAddon.operator.example.com":       "addon",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestFromFS_SameDigestAsFromFile reads a chart from both sources.
func TestFromFS_SameDigestAsFromFile(t *testing.T) {
	embedded, err := catalog.FromFS(chartwright.Files, chartwright.WatchesFile)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.CopyFS(folder, chartwright.Files); err != nil {
		t.Fatal(err)
	}
	onDisk, err := catalog.FromFile(filepath.Join(folder, chartwright.WatchesFile))
	if err != nil {
		t.Fatal(err)
	}
	if len(onDisk) != len(embedded) {
		t.Fatalf("%d kinds on disk, %d embedded", len(onDisk), len(embedded))
	}
	for i := range embedded {
		if embedded[i].Chart.Digest != onDisk[i].Chart.Digest {
			t.Errorf("%s has another digest on disk", embedded[i].Kind)
		}
	}
}

func TestFromFile_FindsCharts(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "ops", "charts", "inside"), chart("inside"))
	write(t, filepath.Join(root, "elsewhere"), chart("elsewhere"))
	write(t, filepath.Join(root, "ops"), map[string]string{
		"packed.tgz": string(archive(t, "packed", chart("packed"))),
		"watches.yaml": entry("Relative", "charts/inside") +
			entry("Dotted", "./charts/../charts/inside/") +
			entry("Parent", "../elsewhere") +
			entry("Absolute", filepath.Join(root, "elsewhere")) +
			entry("Packed", "packed.tgz"),
	})
	check := func(t *testing.T, file string) {
		t.Helper()
		kinds, err := catalog.FromFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, k := range kinds {
			got[k.Kind] = k.Chart.Name() + "-" + k.Chart.Version()
		}
		want := map[string]string{
			"Relative": "inside-1.2.3", "Dotted": "inside-1.2.3",
			"Parent": "elsewhere-1.2.3", "Absolute": "elsewhere-1.2.3", "Packed": "packed-1.2.3",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	t.Run("by an absolute path", func(t *testing.T) { check(t, filepath.Join(root, "ops", "watches.yaml")) })
	t.Run("in the working folder", func(t *testing.T) {
		t.Chdir(filepath.Join(root, "ops"))
		check(t, "watches.yaml")
	})
	t.Run("below the working folder", func(t *testing.T) {
		t.Chdir(root)
		check(t, filepath.Join("ops", "watches.yaml"))
	})
}

// TestFromFile_InChartFolder reads a watches file in the folder of its chart.
func TestFromFile_InChartFolder(t *testing.T) {
	root := t.TempDir()
	write(t, root, chart("own"))
	write(t, root, map[string]string{"watches.yaml": entry("Own", "."), "deploy/watches.yaml": entry("Own", "..")})
	for _, at := range []string{root, filepath.Join(root, "deploy")} {
		t.Chdir(at)
		if kinds, err := catalog.FromFile("watches.yaml"); err != nil || kinds[0].Chart.Name() != "own" {
			t.Errorf("in %s: %v", at, err)
		}
	}
}

func TestFromFS_ReadsArchives(t *testing.T) {
	fsys := fstest.MapFS{
		"ops/watches.yaml": {Data: []byte(entry("Packed", "../packed.tgz"))},
		"packed.tgz":       {Data: archive(t, "packed", chart("packed"))},
	}
	kinds, err := catalog.FromFS(fsys, "ops/watches.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if got := kinds[0].Chart.Name(); got != "packed" {
		t.Errorf("the chart is %s", got)
	}
}

func TestProblems(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "good"), chart("good"))
	write(t, filepath.Join(root, "empty"), map[string]string{"notes": "no chart here"})

	broken := chart("broken")
	broken["templates/config.yaml"] = "{{ if }}"
	write(t, filepath.Join(root, "broken"), broken)

	versionless := chart("versionless")
	versionless["Chart.yaml"] = "apiVersion: v2\nname: versionless\n"
	write(t, filepath.Join(root, "versionless"), versionless)

	library := chart("library")
	library["Chart.yaml"] += "type: library\n"
	write(t, filepath.Join(root, "library"), library)

	parent := chart("parent")
	parent["Chart.yaml"] += "dependencies:\n- {name: child, version: 1.0.0, repository: 'https://charts.example.com'}\n"
	write(t, filepath.Join(root, "parent"), parent)

	write(t, root, map[string]string{"text.tgz": "this is no archive", "watches.yaml": strings.Join([]string{
		entry("Good", "good"),
		entry("Missing", "nowhere"),
		entry("Empty", "empty"),
		entry("Broken", "broken"),
		entry("Versionless", "versionless"),
		entry("Library", "library"),
		entry("Parent", "parent"),
		entry("Text", "text.tgz"),
		"- version: v1\n  kind: Unknown\n  chrat: good\n",
	}, "")})

	file := filepath.Join(root, "watches.yaml")
	_, err := catalog.FromFile(file)
	var problems watches.LineErrors
	if !errors.As(err, &problems) {
		t.Fatalf("FromFile returned %v, want LineErrors", err)
	}
	want := []struct {
		line int
		text string
	}{
		{6, "chart nowhere: not found: expected the path of a chart folder or .tgz, relative to the watches file"},
		{9, "chart empty: "},
		{12, "chart broken: "},
		{15, "chart versionless: validation: chart.metadata.version is required"},
		{18, "chart library: the chart is a library chart"},
		{21, "chart parent: found in Chart.yaml, but missing in charts/ directory: child: run 'helm dependency build'"},
		{24, "chart text.tgz: "},
		{25, "the entry has no chart"},
		{27, `unknown key "chrat"`},
	}
	if len(problems) != len(want) {
		t.Fatalf("%d problems, want %d:\n%v", len(problems), len(want), err)
	}
	for i, w := range want {
		got := problems[i]
		if got.File != file || got.Line != w.line || !strings.HasPrefix(got.Message, w.text) {
			t.Errorf("problem %d: %v\nwant line %d: %s…", i, got, w.line, w.text)
		}
	}
}

func TestFromFS_ReportsInvalidTemplates(t *testing.T) {
	files := fstest.MapFS{}
	for name, content := range chart("good") {
		files["good/"+name] = &fstest.MapFile{Data: []byte(content)}
	}
	for want, fields := range map[string]string{
		"releaseNamespace: not a template":   "  releaseNamespace: '{{'\n",
		"createNamespace: not a template":    "  releaseNamespace: apps\n  createNamespace: '{{'\n",
		"serviceAccountName: not a template": "  serviceAccountName: '{{'\n",
	} {
		files["watches.yaml"] = &fstest.MapFile{Data: []byte(entry("Good", "good", fields))}
		_, err := catalog.FromFS(files, "watches.yaml")
		var problems watches.LineErrors
		if !errors.As(err, &problems) || len(problems) != 1 || !strings.HasPrefix(problems[0].Message, want) {
			t.Errorf("got error %v, want %s", err, want)
		}
	}
}

func TestFromFile_MissingFile(t *testing.T) {
	if _, err := catalog.FromFile(filepath.Join(t.TempDir(), "watches.yaml")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("FromFile: %v", err)
	}
	if _, err := catalog.FromFS(fstest.MapFS{}, "watches.yaml"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("FromFS: %v", err)
	}
}

func TestOverrides(t *testing.T) {
	t.Setenv("CHARTWRIGHT_TEST_IMAGE", "registry.example.com/app:2")
	files := fstest.MapFS{}
	for name, content := range chart("good") {
		files["good/"+name] = &fstest.MapFile{Data: []byte(content)}
	}
	load := func(overrides ...string) ([]catalog.Kind, error) {
		text := entry("Good", "good", "  overrideValues:\n    ", strings.Join(overrides, "\n    "), "\n")
		files["watches.yaml"] = &fstest.MapFile{Data: []byte(text)}
		return catalog.FromFS(files, "watches.yaml")
	}

	kinds, err := load(
		"image.repository: $CHARTWRIGHT_TEST_IMAGE",
		"replicas: '3'",
		"debug: 'true'",
		"nothing: 'null'",
		"'list[1]': b",
		`name: '{{ "shout" | upper }}'`,
		`'nodeSelector.kubernetes\.io/os': linux`,
	)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"image":        map[string]any{"repository": "registry.example.com/app:2"},
		"replicas":     int64(3),
		"debug":        true,
		"nothing":      nil,
		"list":         []any{nil, "b"},
		"name":         "SHOUT",
		"nodeSelector": map[string]any{"kubernetes.io/os": "linux"},
	}
	if diff := cmp.Diff(want, kinds[0].Overrides); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	for _, bad := range []string{"a: '{{ nope }}'", `a: '{{ fail "x" }}'`, "'a[': b"} {
		_, err := load(bad)
		var problems watches.LineErrors
		if !errors.As(err, &problems) || problems[0].Line == 0 || !strings.HasPrefix(problems[0].Message, "overrideValues: ") {
			t.Errorf("%s: %v, want a problem on a line", bad, err)
		}
	}
}

// A problem of an entry concerns only its kind, also if several entries are on one line.
func TestUsable(t *testing.T) {
	const good = "{group: a.example.com, version: v1, kind: Good, chart: c}"
	for text, want := range map[string]string{
		"[" + good + "]": "usable Good",
		"[{group: a.example.com, version: v1, kind: Bad, chart: c, maxHistroy: 1}, " + good + ", {group: a.example.com, version: v1, kind: Worse, chart: bad}]": "usable Good and broken Bad Worse",
		"[" + good + ", {group: a.example.com, version: v1, kind: Good, chart: c, plural: others}]":                                                             "usable Good and broken Good",
		"[" + good + ", {group: a.example.com, version: v1, kind: Bad, chart: c, allow: {clusterScope: [Node]}}]":                                               "usable Good and broken Bad",
		"[" + good + ", {group: a.example.com, version: v1, kind: Bad, chart: c, overrideValues: {a: '{{ (\"x\" | split \":\")._1 }}'}}]":                       "usable Good and broken Bad",
		"[" + good + ", text]": "usable Good and broken ",
		"{a: b}":               "error",
		"[":                    "error",
		"":                     "error",
	} {
		usable, broken, err := catalog.Usable(catalog.FromFS(fstest.MapFS{
			"watches.yaml": {Data: []byte(text)}, "c/Chart.yaml": {Data: []byte("apiVersion: v2\nname: c\nversion: 1.0.0\n")},
		}, "watches.yaml"))
		got := "error"
		if err == nil {
			words := []string{"usable"}
			for _, kind := range usable {
				words = append(words, kind.Kind)
			}
			for i, kind := range broken {
				if i == 0 {
					words = append(words, "and broken")
				}
				words = append(words, kind.Kind)
				if len(kind.Problems) == 0 || kind.Chart != nil {
					t.Errorf("%s: %+v", text, kind)
				}
			}
			got = strings.Join(words, " ")
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
