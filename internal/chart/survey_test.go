package chart

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/chartwright/chartwright/internal/testenv"
)

// A survey returns each object of several renders once, and fails for the same values as a
// render.
func TestSurvey_FindsObjectsOfRender(t *testing.T) {
	t.Parallel()
	folders, err := filepath.Glob("../../charts/*")
	if err != nil || len(folders) == 0 {
		t.Fatalf("got no charts, error %v", err)
	}
	for _, folder := range append(folders, "../../test/e2e/testdata/charts/hooks", "../../test/e2e/testdata/charts/everything") {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			chart, err := LoadDir(os.DirFS(folder))
			if err != nil {
				t.Fatal(err)
			}
			examples, err := chart.Examples()
			if err != nil {
				t.Fatal(err)
			}
			survey, err := chart.Survey(Offline{Release: "web", Namespace: "apps"})
			if err != nil {
				t.Fatal(err)
			}
			given := []map[string]any{{}, {"replicas": "many"}, {}}
			for _, name := range slices.Sorted(maps.Keys(examples)) {
				given = append(given, examples[name])
			}
			want, got := map[string]bool{}, map[string]bool{}
			note := func(into map[string]bool, hook bool, objects []RenderedObject) {
				for _, object := range objects {
					// Some objects contain passwords that differ in each render.
					into[fmt.Sprint(hook, object.Source, object.GroupVersionKind(), object.GetName(), object.GetLabels(), object.Events, object.DeletePolicies)] = true
				}
			}
			for i, values := range given {
				rendered, renderErr := chart.Render(Offline{Release: "web", Namespace: "apps", Values: maps.Clone(values)})
				found, err := survey.Render(maps.Clone(values))
				if (err == nil) != (renderErr == nil) {
					t.Fatalf("values %d: got error %v, want that of Render, %v", i, err, renderErr)
				}
				if err != nil {
					continue
				}
				if i == 2 && len(found.Objects) == len(rendered.Objects) {
					t.Errorf("the survey returned all %d objects again for the same values", len(found.Objects))
				}
				note(want, false, rendered.Objects)
				note(want, true, rendered.Hooks)
				note(got, false, found.Objects)
				note(got, true, found.Hooks)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("objects (-Render +Survey):\n%s", diff)
			}
		})
	}
}

// publicCharts names the folder with public charts, as in test/corpus.
const publicCharts = "CHARTWRIGHT_PUBLIC_CHARTS"

// Change finds the same objects of whole charts as a render of all templates, after a
// change of each boolean.
func TestChange_FindsObjectsOfCharts(t *testing.T) {
	patterns := []string{"../../charts/*", "../../test/e2e/testdata/charts/*"}
	if folder := os.Getenv(publicCharts); folder != "" {
		patterns = append(patterns, folder+"/*")
	}
	for _, pattern := range patterns {
		folders, err := filepath.Glob(pattern)
		if err != nil || len(folders) == 0 {
			t.Fatalf("%s: got no charts, error %v", pattern, err)
		}
		for _, folder := range folders {
			if info, err := os.Stat(folder); err != nil || !info.IsDir() {
				continue
			}
			t.Run(filepath.Base(folder), func(t *testing.T) {
				t.Parallel()
				// Other tests expect which charts cannot be loaded.
				if chart, err := LoadDir(os.DirFS(folder)); err == nil {
					compareChanges(t, chart)
				}
			})
		}
	}
}

func compareChanges(t *testing.T, chart *Chart) {
	t.Helper()
	defaults, err := chart.Values()
	if err != nil {
		t.Fatal(err)
	}
	survey := func() *Survey {
		survey, err := chart.Survey(Offline{Release: "web", Namespace: "apps", APIVersions: chart.Features.APIs})
		if err != nil {
			t.Fatal(err)
		}
		return survey
	}
	selective, exhaustive := survey(), survey()
	base, found, err := selective.Base(nil)
	want, wantErr := exhaustive.Render(nil)
	random := func(values map[string]any) func() sets.Set[string] {
		return func() sets.Set[string] { return randomTemplates(exhaustive, values) }
	}
	compareFound(t, "base", found, err, want, wantErr, random(nil))
	booleans := pathsOfBooleans(defaults, nil)
	// A render of a public chart takes up to 0.1 s, and much longer with the race detector.
	maxChanges := testenv.Attempts(2, 8)
	for at := 0; at < len(booleans); at += 1 + len(booleans)/maxChanges {
		path := booleans[at]
		change := func() map[string]any {
			values := map[string]any{}
			on, _, _ := unstructured.NestedBool(defaults, path...)
			if err := unstructured.SetNestedField(values, !on, path...); err != nil {
				t.Fatal(err)
			}
			return values
		}
		found, err := base.Change(change())
		want, wantErr := exhaustive.Render(change())
		compareFound(t, strings.Join(path, "."), found, err, want, wantErr, random(change()))
	}
}

// randomTemplates returns the templates that render other objects for the same values,
// such as passwords.
func randomTemplates(survey *Survey, values map[string]any) sets.Set[string] {
	again, _ := survey.Render(values)
	random := sets.New[string]()
	for _, object := range slices.Concat(again.Objects, again.Hooks) {
		random.Insert(object.Source)
	}
	return random
}

func pathsOfBooleans(values map[string]any, above []string) (paths [][]string) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		path := append(slices.Clip(above), key)
		switch v := values[key].(type) {
		case bool:
			paths = append(paths, path)
		case map[string]any:
			paths = append(paths, pathsOfBooleans(v, path)...)
		}
	}
	return paths
}
