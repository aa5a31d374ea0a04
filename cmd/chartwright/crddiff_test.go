package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// project writes a watches file and its charts, and returns the file's name.
func project(t *testing.T, files map[string]string) string {
	t.Helper()
	return filepath.Join(writeProject(t, files), "watches.yaml")
}

const (
	boxEntry  = "- {group: example.com, version: v1, kind: Box, chart: box}\n"
	cupEntry  = "- {group: example.com, version: v1, kind: Cup, chart: box}\n"
	boxSchema = `{"type": "object", "additionalProperties": false, "required": ["name"], "properties": {
		"name": {"type": "string"}, "size": {"type": "integer", "minimum": 1}, "color": {"enum": ["red", "green"]}, "old": {"type": "string"}, "tag": {"type": "string"}}}`
	nextSchema = `{"type": "object", "additionalProperties": false, "required": ["name", "size"], "properties": {
		"name": {"type": "integer"}, "size": {"type": "integer", "minimum": 2}, "color": {"enum": ["red", "blue"]}, "tag": {"type": "string", "pattern": "^v"}, "new": {"type": "string"}}}`
)

func boxes(t *testing.T, watches, schema string) string {
	t.Helper()
	return project(t, map[string]string{"watches.yaml": watches, "box/Chart.yaml": "apiVersion: v2\nname: box\nversion: 1.0.0", "box/values.schema.json": schema})
}

// before writes the definitions of a watches file into a folder.
func before(t *testing.T, watchesFile string) string {
	t.Helper()
	dir := t.TempDir()
	if _, _, err := crdCommand(t, "--watches-file", watchesFile, "--output-dir", dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

const wantDiff = `boxes.example.com: 7 breaking changes
  BREAKING  EnumNarrowed     spec.color: "green" is no longer possible
  BREAKING  NullableRemoved  spec.size: null was possible
  BREAKING  PatternChanged   spec.tag: it has to match ^v
  BREAKING  PropertyRemoved  spec.old: it is removed, and values are dropped
  BREAKING  RangeNarrowed    spec.size: minimum 1 becomes 2
  BREAKING  RequiredAdded    spec.size: it is required now
  BREAKING  TypeChanged      spec.name: type string becomes integer
  harmless  PropertyAdded    spec.new: it is new
  harmless  Widened          spec.color: "blue" is possible, too
`

func TestCRDDiff(t *testing.T) {
	dir := before(t, boxes(t, boxEntry, boxSchema))
	file := filepath.Join(dir, "example.com_boxes.yaml")
	next := boxes(t, boxEntry, nextSchema)
	for _, old := range []string{dir, file} {
		stdout, _, err := crdCommand(t, "--watches-file", next, "--diff", old)
		if stdout != wantDiff {
			t.Errorf("%s:\n%s", old, stdout)
		}
		if err == nil || err.Error() != "7 changes break custom resources that there are" {
			t.Errorf("%s: %v", old, err)
		}
	}
	stdout, _, err := crdCommand(t, "--watches-file", boxes(t, boxEntry, boxSchema), "--diff", dir)
	if err != nil || stdout != "boxes.example.com: nothing that matters has changed\n" {
		t.Errorf("%v\n%s", err, stdout)
	}
}

func TestCRDDiffJSON(t *testing.T) {
	dir := before(t, boxes(t, boxEntry, boxSchema))
	stdout, _, err := crdCommand(t, "--watches-file", boxes(t, boxEntry, nextSchema), "--diff", dir, "-o", "json")
	if err == nil {
		t.Error("no error")
	}
	var got struct {
		Breaking    int
		Definitions []struct {
			Name, Kind, State string
			Changes           []struct {
				Class, Version, Path, Message string
				Breaking                      bool
			}
		}
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatalf("%v\n%s", err, stdout)
	}
	if got.Breaking != 7 || len(got.Definitions) != 1 || got.Definitions[0].State != "changed" || len(got.Definitions[0].Changes) != 9 {
		t.Fatalf("%+v", got)
	}
	if first := got.Definitions[0].Changes[0]; first.Class != "EnumNarrowed" || first.Version != "v1" || first.Path != "spec.color" || !first.Breaking {
		t.Errorf("%+v", first)
	}
}

func TestCRDDiffOfKinds(t *testing.T) {
	dir := before(t, boxes(t, boxEntry, boxSchema))
	stdout, _, err := crdCommand(t, "--watches-file", boxes(t, cupEntry, boxSchema), "--diff", dir)
	const want = "boxes.example.com: the kind Box is in no entry of the watches file: nobody would serve its resources\ncups.example.com: the kind Cup is new\n"
	if stdout != want || err == nil || err.Error() != "1 change breaks custom resources that there are" {
		t.Errorf("%v\n%s", err, stdout)
	}
	// A file is of one kind and says nothing of others.
	stdout, _, err = crdCommand(t, "--watches-file", boxes(t, boxEntry+cupEntry, boxSchema), "--diff", filepath.Join(dir, "example.com_boxes.yaml"))
	if stdout != "boxes.example.com: nothing that matters has changed\n" || err != nil {
		t.Errorf("%v\n%s", err, stdout)
	}
	// The kind is what it is by whatever name.
	stdout, _, err = crdCommand(t, "--watches-file", boxes(t, strings.Replace(boxEntry, "chart", "plural: boxen, chart", 1), boxSchema), "--diff", dir)
	if stdout != "boxes.example.com: 1 breaking change\n  BREAKING  NamesChanged  plural boxes becomes boxen\n" || err == nil {
		t.Errorf("%v\n%s", err, stdout)
	}
	// What is the same in several versions is told once.
	versions := strings.Replace(boxEntry, "chart", "versions: [{name: v1, storage: true}, {name: v2}], chart", 1)
	dir = before(t, boxes(t, versions, boxSchema))
	stdout, _, _ = crdCommand(t, "--watches-file", boxes(t, versions, `{"type": "object", "additionalProperties": false}`), "--diff", dir)
	if strings.Count(stdout, "spec.old") != 1 {
		t.Error(stdout)
	}
}

// TestCRDDiffOfStdin: what kubectl get crd -o yaml prints is a list.
func TestCRDDiffOfStdin(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(before(t, boxes(t, boxEntry, boxSchema)), "example.com_boxes.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	_, definition, _ := strings.Cut(string(data), "---\n")
	list := "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(definition), "\n", "\n  ") + "\n"
	for _, input := range []string{string(data), list} {
		root := newRoot()
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetIn(strings.NewReader(input))
		root.SetArgs([]string{"crd", "--watches-file", boxes(t, boxEntry, boxSchema), "--diff", "-"})
		if err := root.Execute(); err != nil || out.String() != "boxes.example.com: nothing that matters has changed\n" {
			t.Errorf("%v\n%s", err, out.String())
		}
	}
}

func TestCRDDiffRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, data := range map[string]string{
		"none/kustomization.yaml": "resources: []\n",
		"none/readme.md":          "kind: [",
		"broken/a.yaml":           "kind: [",
		"old/a.json":              `{"apiVersion": "apiextensions.k8s.io/v1beta1", "kind": "CustomResourceDefinition", "metadata": {"name": "boxes.example.com"}}`,
		"wrong/a.yaml":            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: boxes.example.com}\nspec: a",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--diff", filepath.Join(dir, "nowhere")}, "--diff: stat "},
		{[]string{"--diff", filepath.Join(dir, "none")}, "none: no CustomResourceDefinition in it"},
		{[]string{"--diff", filepath.Join(dir, "none", "kustomization.yaml")}, "kustomization.yaml: no CustomResourceDefinition in it"},
		{[]string{"--diff", filepath.Join(dir, "broken")}, "a.yaml: error converting YAML"},
		{[]string{"--diff", filepath.Join(dir, "old")}, "a.json: boxes.example.com is of apiextensions.k8s.io/v1beta1: expected apiextensions.k8s.io/v1"},
		{[]string{"--diff", filepath.Join(dir, "wrong")}, "a.yaml: boxes.example.com: "},
		{[]string{"--diff", dir, "--output-dir", dir}, "--diff and --output-dir: one at a time"},
		{[]string{"-o", "json"}, "--output is for --diff"},
		{[]string{"--diff", dir, "-o", "xml"}, `--output "xml": expected json`},
	} {
		if stdout, _, err := crdCommand(t, test.args...); err == nil || !strings.Contains(err.Error(), test.want) || stdout != "" {
			t.Errorf("%q: %v, want %q", test.args, err, test.want)
		}
	}
}
