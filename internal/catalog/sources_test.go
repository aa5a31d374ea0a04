package catalog_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/internal/catalog"
)

func TestSources(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "a"), chart("a"))
	load := func(from string) ([]catalog.Kind, error) {
		write(t, folder, map[string]string{"watches.yaml": entry("A", "a", "  valuesFrom: ["+from+"]\n")})
		return catalog.FromFile(filepath.Join(folder, "watches.yaml"))
	}
	kinds, err := load("{kind: Secret, name: '{{ .metadata.name }}-values', targetPath: 'a[0].b'}, {kind: ConfigMap, name: all}")
	if err != nil {
		t.Fatal(err)
	}
	found := kinds[0].Sources
	if len(found) != 2 || found[0].TargetPath != "a[0].b" || found[1].Kind != "ConfigMap" {
		t.Fatalf("%+v", found)
	}
	for i, want := range []string{"web-values", "all"} {
		if name, err := found[i].Object.For(map[string]any{"metadata": map[string]any{"name": "web"}}); err != nil || name != want {
			t.Errorf("%q, %v, want %q", name, err, want)
		}
	}
	for from, want := range map[string]string{
		"{kind: Secret, name: '{{ .metadata'}":                                "watches.yaml:1: valuesFrom[0].name: not a template: ",
		"{kind: Secret, name: a}, {kind: Secret, name: a, targetPath: 'a=b'}": `watches.yaml:1: valuesFrom[1].targetPath: "a=b": expected a path to one value`,
	} {
		if _, err := load(from); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", from, err, want)
		}
	}
}
