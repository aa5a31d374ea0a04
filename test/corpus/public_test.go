package corpus

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
	chartvalues "github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// publicCharts is the environment variable with a folder of charts.
const publicCharts = "CHARTWRIGHT_PUBLIC_CHARTS"

// everything grants all permissions to the operator of a public chart: deriving
// the permissions of a large chart would take longer than the test.
var everything = harness.Grants{ClusterWide: []rbacv1.PolicyRule{
	{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}},
	{NonResourceURLs: []string{"*"}, Verbs: []string{"*"}},
}}

// specOf contains values that a public chart needs in addition to its defaults,
// and why.
var specOf = map[string]values{}

// publicRows returns a row for each chart in the folder, or none without a
// folder.
func publicRows(t *testing.T) []row {
	t.Helper()
	folder := os.Getenv(publicCharts)
	if folder == "" {
		t.Logf("no public charts: %s is not set", publicCharts)
		return nil
	}
	files, err := filepath.Glob(filepath.Join(folder, "*", "Chart.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s=%s: no chart found, want folders with a Chart.yaml: %v", publicCharts, folder, err)
	}
	var rows []row
	for _, file := range files {
		path, err := filepath.Abs(filepath.Dir(file))
		if err != nil {
			t.Fatal(err)
		}
		chart, err := catalog.OpenChart(path)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		name := base(path)
		spec, err := specFor(chart, specOf[name])
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		edit, err := editFor(chart, spec)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		r := row{name: name, chart: path, public: true, spec: spec, edit: edit}
		if sources, err := sourcesFor(chart); err != nil {
			t.Fatalf("%s: %v", path, err)
		} else if len(sources) > 0 {
			r.keys = harness.Entry{"valuesFrom": sources}
		}
		rows = append(rows, r)
	}
	return rows
}

// specFor returns values with which the chart renders: those given, or the first
// of the author's examples merged over them.
func specFor(chart *chart.Chart, given values) (values, error) {
	_, failed := rendered(chart, given)
	if failed == nil {
		return given, nil
	}
	examples, err := chart.Examples()
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(examples)) {
		spec := chartvalues.Merge(chartvalues.Normalize(examples[name]), given)
		if _, err := rendered(chart, spec); err == nil {
			return spec, nil
		}
	}
	return nil, fmt.Errorf("renders neither with its defaults nor with a ci/*-values.yaml: %w", failed)
}

func rendered(loaded *chart.Chart, spec values) (*chart.Rendered, error) {
	return loaded.Render(chart.Offline{
		Release: "web", Namespace: "somewhere", Unchecked: true, APIVersions: loaded.Features.APIs,
		Values: chartvalues.Merge(values{}, runtime.DeepCopyJSON(spec)),
	})
}

// marker is the text that an edit of a public chart adds.
const marker = "corpus-edit"

// wide are values that most charts print into several objects, best first.
var wide = []string{"commonannotations", "podannotations", "annotations", "commonlabels", "customlabels", "podlabels", "labels"}

// editFor returns an edit that is visible in an object: an annotation or a
// label in a value for annotations or labels.
func editFor(chart *chart.Chart, spec values) (values, error) {
	defaults, err := chart.Values()
	if err != nil {
		return nil, err
	}
	candidates := annotationsIn(chartvalues.Coalesce(defaults, spec), nil)
	slices.SortStableFunc(candidates, func(a, b []string) int { return rank(a) - rank(b) })
	for _, path := range candidates {
		var edit any = marker
		for _, key := range slices.Backward(append(path, marker)) {
			edit = values{key: edit}
		}
		changed := edit.(values)
		made, err := rendered(chart, chartvalues.Merge(chartvalues.Merge(values{}, runtime.DeepCopyJSON(spec)), changed))
		if err == nil && strings.Contains(made.Manifest, marker) {
			return changed, nil
		}
	}
	return nil, fmt.Errorf("none of %d values for annotations and labels is visible in an object: want one of %q", len(candidates), wide)
}

// rank sorts values near the root first.
func rank(path []string) int {
	return 10*len(path) + slices.Index(wide, strings.ToLower(path[len(path)-1]))
}

// annotationsIn returns the paths of values for annotations and labels.
func annotationsIn(vals values, above []string) [][]string {
	var found [][]string
	for _, key := range slices.Sorted(maps.Keys(vals)) {
		path := append(slices.Clip(above), key)
		inner, isMap := vals[key].(map[string]any)
		if slices.Contains(wide, strings.ToLower(key)) && (isMap || vals[key] == nil) {
			found = append(found, path)
		} else if isMap && len(path) < 4 {
			found = append(found, annotationsIn(inner, path)...)
		}
	}
	return found
}

// allowAll returns an allow block for all kinds of the cluster, and for the
// CRDs that charts install.
func allowAll(env *harness.Env) values {
	env.T().Helper()
	lists, err := env.Typed.Discovery().ServerPreferredResources()
	if err != nil && len(lists) == 0 {
		env.T().Fatal(err)
	}
	var kinds []string
	for _, list := range lists {
		group, _, grouped := strings.Cut(list.GroupVersion, "/")
		for _, resource := range list.APIResources {
			switch {
			case resource.Namespaced:
			case grouped:
				kinds = append(kinds, resource.Kind+"."+group)
			default:
				kinds = append(kinds, resource.Kind)
			}
		}
	}
	return values{"otherNamespaces": true, "clusterScoped": slices.Compact(slices.Sorted(slices.Values(kinds))), "lookup": "all"}
}
