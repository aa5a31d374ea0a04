package helm

import (
	"slices"
	"strings"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/render"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/helm/engine"
	"github.com/chartwright/chartwright/internal/release"
)

func (r *run) numbers(integers bool) values.Numbers {
	return values.Numbers{Integers: integers, Set: r.Overrides}
}

// integersOf reports whether the templates of a revision got integers. For a revision of
// another program, the watches entry is the best guess.
func (r *run) integersOf(record release.Record) bool {
	if record.Written() {
		return record.Integers
	}
	return r.Integers
}

// renderUpgrade executes the templates of the prepared chart. They get the numbers of the
// watches entry, unless the release was deployed with others and would change. Then the
// record names the fields concerned.
func (r *run) renderUpgrade(revision int) (*engine.Chart, error) {
	history := r.history()
	newest := slices.IndexFunc(history, func(record release.Record) bool { return record.Written() && record.WasDeployed() })
	if r.NumbersChosen || newest < 0 || history[newest].Integers == r.Integers {
		return r.execute(r.prepared, revision)
	}
	results := &render.Reused{Random: true}
	rendered, err := r.executeReusing(results, r.prepared, revision)
	before, objects, beforeErr := r.executeBefore(results, !r.Integers, revision)
	if beforeErr != nil {
		return rendered, err
	}
	fields := "all, because the chart cannot be rendered with the other numbers"
	if err == nil {
		var after map[string]any
		if after, err = r.objectsIn(rendered); err == nil {
			fields = strings.Join(values.Differences(objects, after, ""), ", ")
		}
	}
	if fields == "" {
		return rendered, nil
	}
	r.driver.Stamp.Integers, r.driver.Stamp.KeptNumbers = !r.Integers, fields
	return before, nil
}

// executeBefore executes the templates with the numbers of the deployed revision.
func (r *run) executeBefore(results *render.Reused, integers bool, revision int) (*engine.Chart, map[string]any, error) {
	in, err := r.Chart.Prepare(r.Values, r.numbers(integers))
	if err != nil {
		return nil, nil, err
	}
	rendered, err := r.executeReusing(results, in, revision)
	if err != nil {
		return nil, nil, err
	}
	objects, err := r.objectsIn(rendered)
	return rendered, objects, err
}

// objectsIn returns the fields of the objects and hooks in a rendered chart, for example
// "Service web: spec".
func (r *run) objectsIn(rendered *engine.Chart) (map[string]any, error) {
	rls, err := chart.DryRun(rendered, r.Release, r.Namespace, map[string]any{}, r.config.Capabilities.KubeVersion, nil)
	if err != nil {
		return nil, err
	}
	read, err := chart.ReadRelease(rls)
	if err != nil {
		return nil, err
	}
	objects := map[string]any{}
	for _, object := range slices.Concat(read.Objects, read.Hooks) {
		for field, value := range values.Normalize(object.Object) {
			objects[apply.Describe(object.Unstructured)+": "+field] = value
		}
	}
	return objects, nil
}
