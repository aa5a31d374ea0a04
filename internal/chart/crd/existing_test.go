package crd_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/crd"
	"github.com/chartwright/chartwright/internal/watches"
)

func loadChart(t *testing.T) *chart.Chart {
	t.Helper()
	loaded, err := chart.LoadDir(fstest.MapFS{"Chart.yaml": {Data: []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n")}})
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// TestFollowExisting: the CRDs of a project decide what the entries leave open.
func TestFollowExisting(t *testing.T) {
	t.Parallel()
	const existing = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: kuberoes.application.kubero.dev}
spec:
  group: application.kubero.dev
  names: {kind: Kubero, plural: kuberoes}
  scope: Cluster
  versions: [{name: v1alpha1, served: false}, {name: v1, served: true, storage: true}]
`
	for name, test := range map[string]struct {
		file    string
		entry   watches.Watch
		want    string
		problem string
	}{
		"open":            {existing, watches.Watch{Kind: "Kubero", Version: "v1"}, "kuberoes.application.kubero.dev Cluster v1alpha1 v1", ""},
		"set":             {existing, watches.Watch{Kind: "Kubero", Version: "v1", Plural: "kuberos", Scope: watches.ScopeNamespaced, Versions: []watches.CRDVersion{{Name: "v1", Storage: true}}}, "kuberos.application.kubero.dev Namespaced v1", ""},
		"another version": {existing, watches.Watch{Kind: "Kubero", Version: "v2"}, "kuberoes.application.kubero.dev Cluster v2", ""},
		"not served":      {existing, watches.Watch{Kind: "Kubero", Version: "v1alpha1"}, "kuberoes.application.kubero.dev Cluster v1alpha1", ""},
		"another kind":    {existing, watches.Watch{Kind: "Box", Version: "v1"}, "boxes.application.kubero.dev Namespaced v1", ""},
		"no CRD":          {"kind: Kustomization\n", watches.Watch{Kind: "Box", Version: "v1"}, "boxes.application.kubero.dev Namespaced v1", ""},
		"no folder":       {"", watches.Watch{Kind: "Box", Version: "v1"}, "boxes.application.kubero.dev Namespaced v1", ""},
		"not YAML":        {"old", watches.Watch{Kind: "Box", Version: "v1"}, "boxes.application.kubero.dev Namespaced v1", ""},
		"invalid":         {"kind: CustomResourceDefinition\nspec: [", watches.Watch{Kind: "Box", Version: "v1"}, "boxes.application.kubero.dev Namespaced v1", "any.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if test.file != "" {
				file := filepath.Join(dir, "config", "crd", "bases", "any.yaml")
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(test.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			test.entry.Group = "application.kubero.dev"
			kinds := []catalog.Kind{{Watch: test.entry, Chart: loadChart(t)}}
			err := crd.FollowExisting(kinds, filepath.Join(dir, "watches.yaml"))
			if (err != nil) != (test.problem != "") || err != nil && !strings.Contains(err.Error(), test.problem) {
				t.Errorf("got error %v, want %q", err, test.problem)
			}
			definition, _, err := crd.Generate(kinds[0])
			if err != nil {
				t.Fatal(err)
			}
			got := []string{definition.Name, string(definition.Spec.Scope)}
			for _, version := range definition.Spec.Versions {
				got = append(got, version.Name)
			}
			if text := strings.Join(got, " "); text != test.want {
				t.Errorf("got %s, want %s", text, test.want)
			}
		})
	}
}
