package corpus

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// engineLine is a line of the command engines.
type engineLine struct {
	Chart, Values string
	Record        map[string]any
	Error         string
}

// TestEngines_WriteEqualRecords: both major versions of Helm write the same release records: objects
// and their order, hooks, values, notes and metadata. testdata/engines.txt explains the differences.
func TestEngines_WriteEqualRecords(t *testing.T) {
	t.Parallel()
	var folders []string
	for _, root := range []string{"testdata/*", "../../charts/*", "../e2e/testdata/charts/*", filepath.Join(os.Getenv(publicCharts), "*")} {
		files, err := filepath.Glob(filepath.Join(root, "Chart.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			folders = append(folders, filepath.Dir(file))
		}
	}
	program := buildEngines(t, "")
	three, again, four := engineLines(t, program, folders), engineLines(t, program, folders), engineLines(t, buildEngines(t, "helm4"), folders)
	if len(three) != len(four) || len(three) != len(again) || len(three) < len(folders) {
		t.Fatalf("%d, %d and %d lines for %d charts", len(three), len(again), len(four), len(folders))
	}
	explained := explainedDifferences(t)
	found, rendered, objects := map[string]bool{}, 0, 0
	for i := range three {
		if three[i].Record != nil {
			rendered++
			manifest, _ := three[i].Record["manifest"].([]any)
			objects += len(manifest)
		}
		// A value that differs between two runs of the same version is random.
		random := map[string]bool{}
		three[i].compare(again[i], func(path, _ string) { random[path] = true })
		three[i].compare(four[i], func(path, values string) {
			kind := index.ReplaceAllString(path, "")
			if values == newline {
				kind = "newline"
			}
			found[kind] = true
			if !random[path] && !explained[kind] {
				t.Errorf("%s %s: %s: %s", three[i].Chart, three[i].Values, path, values)
			}
		})
	}
	t.Logf("%d of %d records of %d charts rendered, with %d objects", rendered, len(three), len(folders), objects)
	for kind := range explained {
		if !found[kind] {
			t.Errorf("testdata/engines.txt explains %s, but all records are equal there", kind)
		}
	}
	if objects == 0 {
		t.Error("no objects were compared")
	}
}

// newline is what only one version has at the end of a text.
const newline = `"", "\n"`

// index is the index of an item in a path.
var index = regexp.MustCompile(`\[\d+\]`)

// explainedDifferences returns the paths in testdata/engines.txt.
func explainedDifferences(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("testdata/engines.txt")
	if err != nil {
		t.Fatal(err)
	}
	paths := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		path, reason, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch {
		case line == "\n" || strings.HasPrefix(line, "#"):
		case reason == "":
			t.Errorf("testdata/engines.txt has no reason for %s", path)
		default:
			paths[path] = true
		}
	}
	return paths
}

// compare calls report with each path at which two lines differ, and with both values.
func (l engineLine) compare(other engineLine, report func(path, values string)) {
	compareJSON("record", l.Record, other.Record, report)
	compareJSON("error", l.Error, other.Error, report)
}

// source is the comment that names the template of an object.
var source = regexp.MustCompile(`(?m)^# Source: .*$`)

// parseManifests replaces the manifests of a record by their objects, in order, because the space
// between objects has no effect.
func (l engineLine) parseManifests() error {
	hooks, _ := l.Record["hooks"].([]any)
	for _, part := range append([]any{l.Record}, hooks...) {
		part := part.(map[string]any)
		text, ok := part["manifest"].(string)
		if !ok {
			continue
		}
		objects := []any{}
		for document := range strings.SplitSeq("\n"+text, "\n---\n") {
			var object any
			if err := yaml.Unmarshal([]byte(document), &object); err != nil {
				return err
			}
			if object != nil {
				objects = append(objects, map[string]any{"source": source.FindString(document), "object": object})
			}
		}
		part["manifest"] = objects
	}
	return nil
}

// buildEngines builds the command engines with the build tag.
func buildEngines(t *testing.T, tag string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "engines")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-tags="+tag, "-o", program, "./engines")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build with the tag %q: %v\n%s", tag, err, out)
	}
	return program
}

// engineLines returns what the command engines prints for the charts in the folders.
func engineLines(t *testing.T, program string, folders []string) (lines []engineLine) {
	t.Helper()
	var errors bytes.Buffer
	run := exec.CommandContext(t.Context(), program, folders...)
	run.Stderr = &errors
	out, err := run.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &errors)
	}
	for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
		var l engineLine
		if err := decoder.Decode(&l); err != nil {
			t.Fatal(err)
		}
		if err := l.parseManifests(); err != nil {
			t.Fatalf("%s: %v", l.Chart, err)
		}
		lines = append(lines, l)
	}
	return lines
}

// compareJSON calls report with each path at which two JSON values differ, and with both values.
func compareJSON(path string, a, b any, report func(path, values string)) {
	switch a := a.(type) {
	case map[string]any:
		if other, ok := b.(map[string]any); ok {
			all := maps.Clone(a)
			maps.Copy(all, other)
			for _, key := range slices.Sorted(maps.Keys(all)) {
				compareJSON(path+"."+key, a[key], other[key], report)
			}
			return
		}
	case []any:
		if other, ok := b.([]any); ok && len(other) == len(a) {
			for i := range a {
				compareJSON(fmt.Sprintf("%s[%d]", path, i), a[i], other[i], report)
			}
			return
		}
	}
	if !reflect.DeepEqual(a, b) {
		report(path, firstDifference(fmt.Sprint(a), fmt.Sprint(b)))
	}
}

// firstDifference returns the texts from where they differ.
func firstDifference(a, b string) string {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return fmt.Sprintf("%.60q, %.60q", a[i:], b[i:])
}
