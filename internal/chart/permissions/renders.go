package permissions

import (
	"errors"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
)

// A release that no person would name so, and its namespace: what holds these
// words is another thing for every release.
const (
	probeRelease   = "rbac-probe-release"
	probeNamespace = "rbac-probe-namespace"
)

// rendered is what came of all renders that succeeded.
type rendered struct {
	objects, hooks []chart.RenderedObject
	// failed is why the render of the default values did not.
	failed error
}

// renderAll renders the chart of a kind over all values that are worth a try.
// That some do not render is as it should be.
func renderAll(kind catalog.Kind, apiVersions []string) (rendered, error) {
	all, err := probes(kind.Chart)
	if err != nil {
		return rendered{}, err
	}
	survey, err := kind.Chart.Survey(apiVersions)
	if err != nil {
		return rendered{}, err
	}
	var r rendered
	seen := map[string]bool{}
	for i, probe := range all {
		objects, hooks, err := survey.Render(probeRelease, probeNamespace, over(probe, kind.Overrides))
		if err != nil {
			if i == 0 {
				r.failed = err
			}
			if !errors.Is(err, chart.ErrRender) && !errors.Is(err, chart.ErrInvalidValues) {
				return rendered{}, err
			}
			continue
		}
		r.objects = unseen(r.objects, objects, seen)
		r.hooks = unseen(r.hooks, hooks, seen)
	}
	return r, nil
}

// unseen adds the objects that no earlier render had.
func unseen(to, from []chart.RenderedObject, seen map[string]bool) []chart.RenderedObject {
	for _, object := range from {
		data, err := object.MarshalJSON()
		if err != nil {
			// It has no kind, and no server takes it.
			continue
		}
		if key := object.Source + string(data); !seen[key] {
			seen[key] = true
			to = append(to, object)
		}
	}
	return to
}
