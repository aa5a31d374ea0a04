package database

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/chartwright/chartwright/internal/helm"
)

const chartDir = "../../../charts/database"

// render renders the chart as the release "db" and returns its objects and
// hooks, by kind and name.
func render(t *testing.T, release string, values map[string]any, apis ...string) map[string]helm.RenderedObject {
	t.Helper()
	loaded, err := helm.LoadDir(os.DirFS(chartDir))
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := loaded.Render(helm.Offline{Release: release, Namespace: "test", Values: values, APIVersions: apis, KubeVersion: "v1.36.0"})
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string]helm.RenderedObject{}
	for _, object := range append(rendered.Objects, rendered.Hooks...) {
		objects[object.GetKind()+"/"+object.GetName()] = object
	}
	return objects
}

// data is what a ConfigMap that the chart renders holds.
func data(t *testing.T, name string) map[string]string {
	t.Helper()
	found := map[string]string{}
	object, ok := render(t, "db", nil)["ConfigMap/"+name]
	if !ok {
		t.Fatalf("there is no ConfigMap %s", name)
	}
	for key, value := range object.Object["data"].(map[string]any) { //nolint:errcheck,forcetypeassert // a panic tells as much
		found[key] = value.(string) //nolint:errcheck,forcetypeassert // a panic tells as much
	}
	return found
}

// config holds the files that the servers go by.
func config(t *testing.T) map[string]string { return data(t, "db-config") }

// scripts are the chart's, as the pods see them.
func scripts(t *testing.T) map[string]string { return data(t, "db-scripts") }

func TestEveryScriptIsMounted(t *testing.T) {
	mounted := scripts(t)
	files, err := fs.Glob(os.DirFS(chartDir), "files/*.sh")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(chartDir, file))
		if err != nil {
			t.Fatal(err)
		}
		if mounted[filepath.Base(file)] != string(text) {
			t.Errorf("%s is not mounted as it is", file)
		}
	}
}
