package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// renderProject writes a project with a kind that has hooks, notes and valuesFrom.
func renderProject(t *testing.T) string {
	t.Helper()
	return writeProject(t, map[string]string{
		"watches.yaml":            "- {group: example.com, version: v1, kind: Box, chart: box, valuesFrom: [{kind: Secret, name: shared, key: word, targetPath: word, optional: true}]}",
		"box/Chart.yaml":          "apiVersion: v2\nname: box\nversion: 1.0.0",
		"box/values.yaml":         "word: hello\n",
		"box/values.schema.json":  `{"properties": {"word": {"type": "string"}, "global": {}}, "additionalProperties": false}`,
		"box/templates/a.yaml":    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\n  namespace: {{ .Release.Namespace }}\ndata: {word: {{ .Values.word }}, version: v{{ .Capabilities.KubeVersion.Minor }}, has: \"{{ .Capabilities.APIVersions.Has \"example.com/v7\" }}\"}\n",
		"box/templates/b.yaml":    "apiVersion: v1\nkind: Pod\nmetadata:\n  name: hook\n  annotations:\n    helm.sh/hook: pre-install\n",
		"box/templates/NOTES.txt": "One.\nTwo.\n",
		"one.yaml":                "apiVersion: example.com/v1\nkind: Box\nmetadata: {name: one}\n",
		"two.yaml":                "apiVersion: example.com/v1\nkind: Box\nmetadata: {name: two, namespace: shop}\nspec: {word: 2, none: 1}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: shared}\nstringData: {word: secret}\n",
		"none.yaml":               "apiVersion: v1\nkind: Service\nmetadata: {name: one}\n",
	})
}

const (
	renderedOne = `---
# Source: box/templates/a.yaml
apiVersion: v1
kind: ConfigMap
metadata:
  name: one
  namespace: default
data: {word: hello, version: v`
	renderedHook = `---
# Source: box/templates/b.yaml
apiVersion: v1
kind: Pod
metadata:
  name: hook
  annotations:
    helm.sh/hook: pre-install
`
)

func TestRender_FilesAndFlags(t *testing.T) {
	t.Chdir(renderProject(t))
	for _, test := range []struct {
		name           string
		args           []string
		code           int
		stdout, stderr []string
		absent         string
	}{
		{name: "one file", args: []string{"-f", "one.yaml"}, stdout: []string{renderedOne, renderedHook}, absent: "One.", stderr: []string{"Warning: one.yaml: document 1: Box default/one: the optional source of values Secret default/shared is not in the file\n"}},
		{name: "without hooks", args: []string{"-f", "one.yaml", "--no-hooks"}, stdout: []string{renderedOne}, absent: "kind: Pod"},
		{name: "with notes", args: []string{"one.yaml", "--show-notes"}, stdout: []string{renderedHook, "# Notes:\n# One.\n# Two.\n"}},
		{name: "namespace", args: []string{"one.yaml", "-n", "shop"}, stdout: []string{"namespace: shop"}},
		{name: "capabilities", args: []string{"one.yaml", "--kube-version", "v1.29.3", "--api-versions", "example.com/v7"}, stdout: []string{`version: v29, has: "true"}`}},
		{name: "invalid Kubernetes version", args: []string{"one.yaml", "--kube-version", "new"}, code: 1, stderr: []string{`parse Kubernetes version "new"`}},
		{
			name: "one of two is invalid", args: []string{"-f", "two.yaml", "--filename", "one.yaml", "--validate"}, code: 1,
			stdout: []string{"# Box default/one: release one in namespace default\n---\n", "data: {word: secret"}, absent: "name: two",
			stderr: []string{
				"Warning: two.yaml: document 1: Box shop/two: spec.none: the CRD does not have this field",
				"Error: two.yaml: document 1: Box shop/two: rejected: the API server would not accept the custom resource:\n  spec.word: Invalid value: \"integer\"",
			},
		},
		{name: "no custom resource", args: []string{"none.yaml"}, code: 1, stderr: []string{"Warning: none.yaml: document 1: Service one is ignored: the watches file does not have its kind\n", "Error: no custom resource in none.yaml: expected one of example.com/v1 Box\n"}},
		{name: "missing file", args: []string{"nowhere.yaml"}, code: 1, stderr: []string{"Error: open nowhere.yaml: no such file"}},
		{name: "no file", code: 1, stderr: []string{"Error: expected -f FILE"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			code, stdout, stderr := program(t, append([]string{"render"}, test.args...)...)
			if code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			for _, want := range test.stdout {
				if !strings.Contains(stdout, want) {
					t.Errorf("stdout does not contain\n%s\nin\n%s", want, stdout)
				}
			}
			for _, want := range test.stderr {
				if !strings.Contains(stderr, want) {
					t.Errorf("stderr does not contain\n%s\nin\n%s", want, stderr)
				}
			}
			if test.code == 1 && len(test.stdout) == 0 && stdout != "" || test.absent != "" && strings.Contains(stdout, test.absent) {
				t.Errorf("stdout is\n%s", stdout)
			}
		})
	}
}

func TestRender_JSONIsAList(t *testing.T) {
	t.Chdir(renderProject(t))
	for args, want := range map[string]string{"-o json": "ConfigMap Pod", "-o json --no-hooks": "ConfigMap"} {
		code, stdout, _ := program(t, append([]string{"render", "-f", "one.yaml"}, strings.Fields(args)...)...)
		var list struct{ Items []struct{ Kind string } }
		if err := json.Unmarshal([]byte(stdout), &list); err != nil || code != 0 {
			t.Fatalf("%s: exit code %d, %v\n%s", args, code, err, stdout)
		}
		var kinds []string
		for _, item := range list.Items {
			kinds = append(kinds, item.Kind)
		}
		if got := strings.Join(kinds, " "); got != want {
			t.Errorf("%s: got %s, want %s", args, got, want)
		}
	}
}

func TestRender_ReadsStandardInput(t *testing.T) {
	dir := renderProject(t)
	in, err := os.ReadFile(filepath.Join(dir, "one.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "render", "-f", "-", "--watches-file", filepath.Join(dir, "watches.yaml"))
	cmd.Env = append(os.Environ(), asMain+"=1")
	cmd.Stdin = bytes.NewReader(in)
	out, err := cmd.Output()
	if err != nil || !strings.HasPrefix(string(out), renderedOne) {
		t.Errorf("%v:\n%s", err, out)
	}
}

// The API server, the charts and the operator accept the samples.
func TestRender_SamplesAreValid(t *testing.T) {
	samples, err := filepath.Glob(filepath.Join("..", "..", "config", "samples", "*_*.yaml"))
	if err != nil || len(samples) < 2 {
		t.Fatalf("samples %v, %v", samples, err)
	}
	code, stdout, stderr := program(t, append([]string{"render", "--validate"}, samples...)...)
	// The charts of Database and VmGroup use lookup.
	if code != 0 || len(strings.Split(stderr, "\n")) > 3 || strings.Count(stdout, "# Source: ") < 2 {
		t.Errorf("exit code %d, stderr %q:\n%s", code, stderr, stdout)
	}
}
