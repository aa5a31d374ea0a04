package scaffold

import (
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/crd"
	"github.com/chartwright/chartwright/internal/chart/landing"
	"github.com/chartwright/chartwright/internal/watches"
)

// Example is a kind for a chart outside of a project.
type Example struct {
	Kind catalog.Kind
	CRD  *apiextensionsv1.CustomResourceDefinition
	// Entry is the watches entry of the kind.
	Entry string
	// Sample is the manifest of a custom resource.
	Sample []byte
	// Notes are messages for the user.
	Notes []string
}

// ExampleOf returns a kind for a chart. Its allow block has everything that the chart
// needs. If the kind of the watch is empty, it is the name of the chart in CamelCase. The
// finder can be nil.
func ExampleOf(loaded *chart.Chart, w watches.Watch, finder *landing.Finder) (Example, error) {
	if w.Kind == "" {
		w.Kind = catalog.KindName(loaded.Name())
	}
	need, err := Allow(catalog.Kind{Watch: w, Chart: loaded}, finder)
	if err != nil {
		return Example{}, err
	}
	written := entry{{"group", w.Group}, {"version", w.Version}, {"kind", w.Kind}, {"chart", "charts/" + loaded.Name()}}
	written.allow(need.Allow)
	var made Example
	if made.Entry, err = written.block("", "\n"); err != nil {
		return Example{}, err
	}
	kinds, err := catalog.FromText("watches.yaml", []byte(made.Entry), func(string) (*chart.Chart, error) { return loaded, nil })
	if err != nil {
		return Example{}, err
	}
	made.Kind = kinds[0]
	if made.CRD, _, err = crd.GenerateWith(made.Kind, finder); err != nil {
		return Example{}, err
	}
	plan := newPlan()
	made.Sample, err = plan.sample(strings.ToLower(w.Kind), kind{Kind: made.Kind, definition: made.CRD})
	made.Notes = plan.Notes
	return made, err
}
