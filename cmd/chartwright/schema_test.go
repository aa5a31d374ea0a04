package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
)

// The printed schema is valid in the chart: Helm accepts the values that it accepted before,
// and refuses those that the API server refuses.
func TestSchema(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"Chart.yaml":  "apiVersion: v2\nname: web\nversion: 1.0.0\n",
		"values.yaml": "# How many pods there are.\nreplicas: 2\nimage: {tag: \"\"}\nresources: {}\n",
		"templates/a.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec:\n  replicas: {{ .Values.replicas }}\n  template:\n" +
			"    spec:\n      containers: [{name: a, resources: {{ toJson .Values.resources }}}]\n",
	} {
		file := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	code, out, stderr := program(t, "schema", folder)
	if code != 0 || stderr != "" || !json.Valid([]byte(out)) {
		t.Fatalf("exit code %d, stderr %q, stdout:\n%s", code, stderr, out)
	}
	if want := `"description": "How many pods there are. Integer or string. Field of Deployment spec.replicas. Default: 2."`; !strings.Contains(out, want) {
		t.Errorf("%s is missing in:\n%s", want, out)
	}
	if err := os.WriteFile(filepath.Join(folder, "values.schema.json"), []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	web, err := catalog.OpenChart(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		values map[string]any
		valid  bool
	}{
		{nil, true},
		{map[string]any{"replicas": "3", "more": true, "resources": map[string]any{"limits": map[string]any{"cpu": 0.5}}}, true},
		{map[string]any{"replicas": nil, "image": nil, "resources": nil}, true},
		{map[string]any{"image": map[string]any{"tag": int64(1)}}, true},
		{map[string]any{"replicas": "many"}, false},
		{map[string]any{"resources": map[string]any{"limits": "all"}}, false},
	} {
		if _, err := web.Render(chart.Offline{Release: "a", Namespace: "b", Values: test.values}); (err == nil) != test.valid {
			t.Errorf("%v: got error %v, want valid %t", test.values, err, test.valid)
		}
	}
}
