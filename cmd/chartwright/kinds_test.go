package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/internal/catalog"
)

func TestFind_WorkingFolderBeforeEmbedded(t *testing.T) {
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
		{name: "none", kinds: "PodSet OvhNginx Experimental VmGroup Config Addon ClusterAddon Database", source: "embedded"},
		{name: "watches.yaml in the folder", files: map[string]string{
			"watches.yaml":   "- {group: example.com, version: v1, kind: Box, chart: box}",
			"box/Chart.yaml": "apiVersion: v2\nname: box\nversion: 1.0.0",
		}, kinds: "Box", source: "watches.yaml"},
		{name: "flag takes precedence", flag: other, files: map[string]string{"watches.yaml": "nonsense"}, kinds: "Crate", source: other},
		{name: "invalid watches.yaml", files: map[string]string{"watches.yaml": "- kind: Box"}, source: "watches.yaml", err: "watches.yaml:1: the entry has no version"},
		{name: "watches.yaml is a folder", files: map[string]string{"watches.yaml/a": ""}, source: "watches.yaml", err: "read the watches file"},
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
				t.Errorf("source is %s, want %s", got, test.source)
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

// charts writes a folder with a chart for each kind, and other files.
func charts(t *testing.T, files map[string]string, kinds ...string) string {
	t.Helper()
	all := maps.Clone(files)
	if all == nil {
		all = map[string]string{}
	}
	for _, kind := range kinds {
		name := strings.ToLower(kind)
		all[name+"/Chart.yaml"] = "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n"
		all[name+"/kind.yaml"] = "group: shop.example.com\nversion: v1\nkind: " + kind + "\n"
		all[name+"/templates/a.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	}
	return writeProject(t, all)
}

func TestLoadAll_AddsChartsDir(t *testing.T) {
	file := filepath.Join(charts(t, map[string]string{"watches.yaml": "- {group: shop.example.com, version: v1, kind: Jar, chart: cup}"}, "Cup"), "watches.yaml")
	embedded := []string{"Addon", "ClusterAddon", "Config", "Database", "Experimental", "OvhNginx", "PodSet", "VmGroup"}
	for _, test := range []struct {
		name   string
		args   []string
		kinds  []string
		broken string
	}{
		{"folder and embedded kinds", []string{"--charts-dir", charts(t, nil, "Cup")}, slices.Sorted(slices.Values(append([]string{"Cup"}, embedded...))), ""},
		{"folder only", []string{"--charts-dir", charts(t, nil, "Cup"), "--watches-file="}, []string{"Cup"}, ""},
		{"folder and watches file", []string{"--charts-dir", charts(t, nil, "Cup", "Box"), "--watches-file", file}, []string{"Box", "Cup", "Jar"}, ""},
		{"broken kind", []string{"--charts-dir", charts(t, map[string]string{"bad/kind.yaml": "[]"}, "Cup"), "--watches-file="}, []string{"Cup"}, "bad/kind.yaml:1: expected one entry"},
		{"no folder, empty watches file", []string{"--watches-file="}, embedded, ""},
		{"without kind.yaml", []string{"--charts-dir", writeProject(t, map[string]string{"box/Chart.yaml": "apiVersion: v2\nname: box\nversion: 1.0.0"}), "--charts-dir-group=a.test", "--watches-file="}, []string{"Box"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			cmd := newRun()
			if err := cmd.ParseFlags(test.args); err != nil {
				t.Fatal(err)
			}
			flag := func(name string) string { return cmd.Flags().Lookup(name).Value.String() }
			kinds, err := loadAll(cmd, flag("watches-file"), chartsFolder{dir: flag("charts-dir"), defaults: catalog.FolderDefaults{Group: flag("charts-dir-group"), Version: flag("charts-dir-version")}})
			if err != nil && test.broken == "" || test.broken != "" && (err == nil || !strings.Contains(err.Error(), test.broken)) {
				t.Fatalf("error %v, want %q", err, test.broken)
			}
			var names []string
			for _, k := range kinds {
				names = append(names, k.Kind)
			}
			slices.Sort(names)
			if !slices.Equal(names, test.kinds) {
				t.Errorf("kinds are %v", names)
			}
		})
	}
}

// A broken kind is an error for these commands, unlike for run.
func TestChartsDir_CRDAndRBAC(t *testing.T) {
	good := charts(t, nil, "Cup")
	bad := charts(t, map[string]string{"bad/kind.yaml": "[]"}, "Cup")
	for command, want := range map[string]string{"crd": "name: cups.shop.example.com", "rbac": "resources: [cups]"} {
		for _, test := range []struct {
			dir, stdout, err string
		}{
			{good, want, ""},
			{bad, "", "bad/kind.yaml:1: expected one entry"},
			{filepath.Join(good, "none"), "", "--charts-dir: "},
		} {
			root := newRoot()
			var out, errs bytes.Buffer
			root.SetOut(&out)
			root.SetErr(&errs)
			root.SetArgs([]string{command, "--watches-file=", "--charts-dir", test.dir})
			err := root.Execute()
			if (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s: error %v, want %q", command, err, test.err)
			}
			if test.stdout == "" && out.Len() > 0 || !strings.Contains(out.String(), test.stdout) {
				t.Errorf("%s printed %q, want %q", command, out.String(), test.stdout)
			}
		}
	}
}

func TestRun_RefusesUnreadableChartsDir(t *testing.T) {
	for want, args := range map[string][]string{
		"--charts-dir: read the folder": {"--charts-dir", filepath.Join(t.TempDir(), "none")},
		// A running operator reports broken kinds.
		"connect by $KUBECONFIG": {"--charts-dir", charts(t, map[string]string{"bad/kind.yaml": "[]"}), "--watches-file="},
	} {
		if code, _, stderr := program(t, append([]string{"run"}, args...)...); code != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%v: exit code %d, %s", args, code, stderr)
		}
	}
}
