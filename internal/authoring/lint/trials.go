package lint

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/values"
)

// trial is a set of values to render the chart with.
type trial struct {
	// values include the overrides of the watches entry.
	values map[string]any
	// authored is set for the defaults and the examples of the chart author.
	authored bool
	// unchecked is set if the schema rejects the values.
	unchecked bool
	// variant is set for variants of the first trial. The chart may not render with
	// them.
	variant bool
}

// copy returns a copy of the values, because a render may change them.
func (t trial) copy() map[string]any { return runtime.DeepCopyJSON(t.values) }

// maxFlips is the maximum number of boolean values to invert.
const maxFlips = 100

// values collects the values with which the chart renders: its defaults, its
// examples, and variants of the first of these with one boolean inverted.
func (c *check) values() error {
	examples, err := c.Kind.Chart.Examples()
	if err != nil {
		file, problem, _ := strings.Cut(err.Error(), ": ")
		c.findf(ruleExample, location{file, 0}, "%s", problem)
	}
	failed := c.addTrial(nil)
	for _, name := range slices.Sorted(maps.Keys(examples)) {
		switch err := c.addTrial(examples[name]); {
		case errors.Is(err, chart.ErrInvalidValues):
			c.findf(ruleExample, location{name, 0}, "%v", err)
		case err != nil:
			c.findf(ruleHelm, location{name, 0}, "%v", err)
		}
	}
	if len(c.trials) == 0 {
		c.findf(ruleNotRendered, location{"values.yaml", 0}, "the chart renders neither with its defaults nor with an example: %v", failed)
		bare := c.bare()
		if _, err := c.render(bare, first); err == nil {
			c.trials = append(c.trials, bare)
		}
	}
	return c.flip()
}

// addTrial adds values to the trials, or returns the error if the chart does not render
// with them.
func (c *check) addTrial(vals map[string]any) error {
	t := trial{values: values.Merge(values.Normalize(vals), c.Kind.Overrides), authored: true}
	rendered, err := c.render(t, first)
	if err != nil {
		return err
	}
	c.trials = append(c.trials, t)
	c.identities(rendered)
	return c.size(rendered)
}

// bare returns the defaults, which the schema may reject.
func (c *check) bare() trial {
	return trial{values: values.Merge(map[string]any{}, c.Kind.Overrides), unchecked: true}
}

// flip adds variants of the first trial, each with one boolean inverted.
func (c *check) flip() error {
	if len(c.trials) == 0 {
		return nil
	}
	base := c.trials[0]
	defaults, err := c.Kind.Chart.Values()
	if err != nil {
		return err
	}
	switches := switchesOf(values.Coalesce(defaults, base.values), nil)
	for _, at := range switches[:min(len(switches), maxFlips)] {
		variant := trial{values: base.copy(), unchecked: base.unchecked, variant: true}
		// The path comes from the values, so every field on it is a map or missing.
		_ = unstructured.SetNestedField(variant.values, !at.on, at.path...)
		c.trials = append(c.trials, variant)
	}
	return nil
}

// toggle is a boolean value.
type toggle struct {
	path []string
	on   bool
}

func switchesOf(vals map[string]any, above []string) []toggle {
	var found []toggle
	for _, key := range slices.Sorted(maps.Keys(vals)) {
		path := append(slices.Clip(above), key)
		switch v := vals[key].(type) {
		case bool:
			found = append(found, toggle{path, v})
		case map[string]any:
			found = append(found, switchesOf(v, path)...)
		}
	}
	return found
}

// release identifies a release to render.
type release struct{ name, namespace string }

// Releases to compare. The names are unlikely in a chart.
var (
	first    = release{"rel-a7x", "ns-a7x"}
	neighbor = release{"rel-b3y", "ns-a7x"}
	namesake = release{"rel-a7x", "ns-b3y"}
)

func (c *check) render(t trial, r release) (*chart.Rendered, error) {
	return c.Kind.Chart.Render(c.offline(t, r))
}

func (c *check) offline(t trial, r release) chart.Offline {
	return chart.Offline{
		Release: r.name, Namespace: r.namespace, Values: t.copy(), Unchecked: t.unchecked,
		APIVersions: c.Kind.Chart.Features.APIs, Numbers: c.Kind.TemplateNumbers(),
	}
}

// survey renders trials for one release.
type survey struct {
	*check
	release
	survey *chart.Survey
	// base is the render of the first trial.
	base *chart.Base
	// known holds the objects of all renders.
	known         map[identity]bool
	clusterScoped func(schema.GroupKind) bool
}

func (c *check) survey(r release) (*survey, error) {
	clusterScoped, err := c.Kind.Chart.ClusterScoped()
	if err != nil {
		return nil, err
	}
	of, err := c.Kind.Chart.Survey(c.offline(c.trials[0], r))
	if err != nil {
		return nil, err
	}
	return &survey{check: c, release: r, survey: of, known: map[identity]bool{}, clusterScoped: clusterScoped}, nil
}

// fresh renders a trial and returns the objects that no earlier render contained. The
// error wraps chart.ErrRender or chart.ErrInvalidValues.
func (s *survey) fresh(t trial) (fresh []foundObject, err error) {
	var found chart.Found
	if s.base == nil {
		s.base, found, err = s.survey.Base(s.trials[0].copy())
		fresh = s.add(found)
		if err != nil {
			return nil, err
		}
	}
	if t.variant {
		found, err = s.base.Change(t.copy())
	} else {
		found, err = s.survey.Render(t.copy())
	}
	return append(fresh, s.add(found)...), err
}

func (s *survey) add(found chart.Found) (fresh []foundObject) {
	for _, o := range s.identify(found, s.release, s.clusterScoped) {
		if s.release == first {
			s.texts(o)
		}
		if !s.known[o.identity] {
			s.known[o.identity] = true
			fresh = append(fresh, o)
		}
	}
	return fresh
}
