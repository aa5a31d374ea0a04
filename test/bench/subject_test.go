package main

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestCommandLine(t *testing.T) {
	words := map[string]string{"{watches}": "/tmp/w.yaml", "{kubeconfig}": "/tmp/k"}
	for line, want := range map[string][]string{
		"":       {},
		"op run": {"op", "run"},
		"op  --watches-file={watches} -k {kubeconfig}": {"op", "--watches-file=/tmp/w.yaml", "-k", "/tmp/k"},
	} {
		if diff := cmp.Diff(want, commandLine(line, words)); diff != "" {
			t.Errorf("%q: %s", line, diff)
		}
	}
}

func TestParsePID(t *testing.T) {
	const status = "etcd                     running  pid 11\nkube-apiserver           running  pid 22\nkwok                     DOWN     died (see x)\n"
	if pid, err := parsePID(status, "kube-apiserver"); err != nil || pid != 22 {
		t.Errorf("got %d, %v", pid, err)
	}
	for _, part := range []string{"kwok", "kube"} {
		if pid, err := parsePID(status, part); err == nil {
			t.Errorf("%s: got %d", part, pid)
		}
	}
}

func TestWriteChart(t *testing.T) {
	for _, test := range []struct {
		version string
		rollout int
		entry   map[string]any
	}{
		{firstVersion, 0, map[string]any{}},
		{nextVersion, 20, map[string]any{"rollout": map[string]any{"maxConcurrent": float64(20)}}},
	} {
		dir := t.TempDir()
		file, err := writeChart(dir, test.version, test.rollout)
		if err != nil {
			t.Fatal(err)
		}
		folder := filepath.Join(dir, "chart-"+test.version)
		maps.Copy(test.entry, map[string]any{"group": group, "version": version, "kind": kind, "chart": folder})
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var entries []map[string]any
		if err := yaml.Unmarshal(text, &entries); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]map[string]any{test.entry}, entries); diff != "" {
			t.Error(diff)
		}
		text, err = os.ReadFile(filepath.Join(folder, chartFile))
		if err != nil {
			t.Fatal(err)
		}
		var chart struct{ Version string }
		if err := yaml.Unmarshal(text, &chart); err != nil || chart.Version != test.version {
			t.Errorf("the chart has version %q, %v", chart.Version, err)
		}
	}
}

func TestNames_AreDistributed(t *testing.T) {
	count := map[string]int{}
	all := map[name]bool{}
	for _, n := range append(names("web", 0, 12), names("web", 12, 8)...) {
		count[n.namespace]++
		all[n] = true
	}
	if len(count) != namespaces || len(all) != 20 {
		t.Errorf("%d names in %v", len(all), count)
	}
	for place, n := range count {
		if n != 4 {
			t.Errorf("%s has %d", place, n)
		}
	}
}
