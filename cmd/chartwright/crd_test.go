package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// crdCommand executes the command line and returns what it printed.
func crdCommand(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	root := newRoot()
	var out, errs bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&errs)
	root.SetArgs(append([]string{"crd"}, args...))
	err = root.Execute()
	return out.String(), errs.String(), err
}

func TestCRDPrints(t *testing.T) {
	stdout, stderr, err := crdCommand(t)
	if err != nil || stderr != "" {
		t.Fatalf("%v, stderr %q", err, stderr)
	}
	for _, name := range []string{"podsets.app.example.com", "ovhnginxes.tutorials.ovhcloud.com"} {
		if !strings.Contains(stdout, "name: "+name) {
			t.Errorf("%s is not printed", name)
		}
	}
	if got := strings.Count(stdout, "\n---\n"); got != 2 {
		t.Errorf("%d documents, want 2", got)
	}
}

func TestCRDWritesAndChecks(t *testing.T) {
	dir := t.TempDir()
	podSets := filepath.Join(dir, "app.example.com_podsets.yaml")
	check := func(stale ...string) {
		t.Helper()
		_, _, err := crdCommand(t, "--output-dir", dir, "--check")
		if (err != nil) != (len(stale) > 0) {
			t.Fatalf("check: %v; stale are %v", err, stale)
		}
		for _, name := range stale {
			if !strings.Contains(err.Error(), name) {
				t.Errorf("%v does not name %s", err, name)
			}
		}
	}
	check(podSets, "ovhnginxes.yaml")
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Fatalf("--check wrote %v, %v", entries, err)
	}
	if stdout, _, err := crdCommand(t, "--output-dir", dir); err != nil || stdout != "" {
		t.Fatalf("%v, stdout %q", err, stdout)
	}
	check()
	if err := os.WriteFile(podSets, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	check(podSets)
}

func TestCRDOfAWatchesFile(t *testing.T) {
	dir := t.TempDir()
	for name, data := range map[string]string{
		"watches.yaml":           "- {group: example.com, version: v1, kind: Box, chart: box}",
		"box/Chart.yaml":         "apiVersion: v2\nname: box\nversion: 1.0.0",
		"box/values.schema.json": `{"type": "object", "if": {"required": ["a"]}, "then": {"required": ["b"]}}`,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stdout, stderr, err := crdCommand(t, "--watches-file", filepath.Join(dir, "watches.yaml"))
	if err != nil || !strings.Contains(stdout, "name: boxes.example.com") {
		t.Fatalf("%v\n%s", err, stdout)
	}
	if strings.Contains(stdout, "Warning") {
		t.Error("warnings are among the definitions")
	}
	if want := "Warning: Box: spec: if: not checked by the API server, but by Helm before it renders\n"; stderr != want {
		t.Errorf("stderr %q, want %q", stderr, want)
	}
	if _, _, err := crdCommand(t, "--watches-file", filepath.Join(dir, "none.yaml")); err == nil {
		t.Error("a file that is not there is no error")
	}
	if _, _, err := crdCommand(t, "--check"); err == nil || !strings.Contains(err.Error(), "--output-dir") {
		t.Errorf("--check without a folder: %v", err)
	}
}
