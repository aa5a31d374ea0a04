package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/internal/catalog"
)

// TestWatchesOfTheWorkingFolder: in a project's folder its own kinds are
// served, elsewhere the embedded ones, and a broken file is not passed over.
func TestWatchesOfTheWorkingFolder(t *testing.T) {
	elsewhere := writeProject(t, map[string]string{
		"other.yaml":     "- {group: example.com, version: v1, kind: Crate, chart: box}",
		"box/Chart.yaml": "apiVersion: v2\nname: box\nversion: 1.0.0",
	})
	other := filepath.Join(elsewhere, "other.yaml")
	for _, test := range []struct {
		name, flag string
		files      map[string]string
		kinds      string
		source     string
		err        string
	}{
		{name: "none", kinds: "PodSet OvhNginx Experimental VmGroup Config Addon Database", source: "embedded"},
		{name: "its own", files: map[string]string{
			"watches.yaml":   "- {group: example.com, version: v1, kind: Box, chart: box}",
			"box/Chart.yaml": "apiVersion: v2\nname: box\nversion: 1.0.0",
		}, kinds: "Box", source: "watches.yaml"},
		{name: "its own, and a flag", flag: other, files: map[string]string{"watches.yaml": "nonsense"}, kinds: "Crate", source: other},
		{name: "a broken one", files: map[string]string{"watches.yaml": "- kind: Box"}, source: "watches.yaml", err: "watches.yaml:1: the entry has no version"},
		{name: "a folder", files: map[string]string{"watches.yaml/a": ""}, source: "watches.yaml", err: "read the watches file"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Chdir(writeProject(t, test.files))
			kinds, err := catalog.Find(test.flag)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("error %v, want %q", err, test.err)
				}
			} else if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, kind := range kinds {
				names = append(names, kind.Kind)
			}
			if got := strings.Join(names, " "); test.err == "" && got != test.kinds {
				t.Errorf("kinds %s, want %s", got, test.kinds)
			}
			if got := watchesName(test.flag); got != test.source {
				t.Errorf("it is told to come from %s, want %s", got, test.source)
			}
		})
	}
}

// writeProject writes files into a new folder.
func writeProject(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
