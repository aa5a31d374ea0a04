package chart

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A survey returns each object of several renders once, and fails for the same values as a
// render.
func TestSurvey_FindsObjectsOfRender(t *testing.T) {
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
			survey, err := chart.Survey(nil)
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
				objects, hooks, err := survey.Render("web", "apps", maps.Clone(values))
				if (err == nil) != (renderErr == nil) {
					t.Fatalf("values %d: got error %v, want that of Render, %v", i, err, renderErr)
				}
				if err != nil {
					continue
				}
				if i == 2 && len(objects) == len(rendered.Objects) {
					t.Errorf("the survey returned all %d objects again for the same values", len(objects))
				}
				note(want, false, rendered.Objects)
				note(want, true, rendered.Hooks)
				note(got, false, objects)
				note(got, true, hooks)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("objects (-Render +Survey):\n%s", diff)
			}
		})
	}
}
