package permissions

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/values"
)

// The probe release and its namespace have unusual names, so that a text that contains
// one of them depends on the release.
const (
	probeRelease   = "rbac-probe-release"
	probeNamespace = "rbac-probe-namespace"
)

// renderAll renders the chart of a kind with all probe values, and ignores those that
// the chart rejects.
func renderAll(kind catalog.Kind, apiVersions []string) (all chart.Found, err error) {
	probes, err := probes(kind.Chart)
	if err != nil {
		return all, err
	}
	survey, err := kind.Chart.Survey(chart.Offline{Release: probeRelease, Namespace: probeNamespace, Numbers: kind.TemplateNumbers(), APIVersions: apiVersions})
	if err != nil {
		return all, err
	}
	bases := make([]*chart.Base, len(probes))
	for i, probe := range probes {
		vals := over(probe.values, kind.Overrides)
		var found chart.Found
		switch {
		case probe.base >= 0:
			found, err = bases[probe.base].Change(vals)
		case probe.isBase:
			bases[i], found, err = survey.Base(vals)
		default:
			found, err = survey.Render(vals)
		}
		if err != nil && !errors.Is(err, chart.ErrRender) && !errors.Is(err, chart.ErrInvalidValues) {
			return all, err
		}
		all.Objects, all.Hooks = append(all.Objects, found.Objects...), append(all.Hooks, found.Hooks...)
	}
	return all, nil
}

// maxProbes limits the number of renders. The analysis of the templates finds other
// objects.
const maxProbes = 256

// probe holds values for a test render.
type probe struct {
	values map[string]any
	// base is the index of the probe that differs only at one path, or -1.
	base int
	// isBase is true if this probe is the base of others.
	isBase bool
}

// probes returns values for test renders: the defaults, the examples in ci/, all booleans
// true or false, and each possible value of each leaf of the defaults and the schema, in
// combination with the defaults, the examples and all booleans true.
func probes(loaded *chart.Chart) ([]probe, error) {
	defaults, err := loaded.Values()
	if err != nil {
		return nil, err
	}
	examples, err := loaded.Examples()
	if err != nil {
		return nil, err
	}
	var leaves leaves
	leaves.ofValues(nil, defaults)
	if err := leaves.ofSchema(loaded.Schema(), false); err != nil {
		return nil, err
	}
	on, off := leaves.switched(true), leaves.switched(false)
	all := []probe{{map[string]any{}, -1, true}}
	for _, name := range slices.Sorted(maps.Keys(examples)) {
		all = append(all, probe{examples[name], -1, true})
	}
	bases := len(all)
	all = append(all, probe{on, -1, true}, probe{off, -1, false})
	for _, example := range all[1:bases] {
		all = append(all, probe{over(on, example.values), -1, false})
	}
	for i, base := range all[:bases+1] {
		for _, leaf := range leaves.list {
			for _, value := range leaf.values {
				if len(all) == maxProbes {
					return all, nil
				}
				all = append(all, probe{over(base.values, values.Nest(leaf.path, value)), i, false})
			}
		}
	}
	return all, nil
}

// leaf is a path and the values to test at it.
type leaf struct {
	path   []string
	values []any
}

type leaves struct{ list []*leaf }

func (l *leaves) add(path []string, more ...any) {
	to := l.at(path)
	if to == nil {
		to = &leaf{path: slices.Clone(path)}
		l.list = append(l.list, to)
	}
	for _, value := range more {
		same := func(known any) bool { return fmt.Sprintf("%#v", known) == fmt.Sprintf("%#v", value) }
		if !slices.ContainsFunc(to.values, same) {
			to.values = append(to.values, value)
		}
	}
}

// at returns the leaf at a path, or nil.
func (l *leaves) at(path []string) *leaf {
	if i := slices.IndexFunc(l.list, func(known *leaf) bool { return slices.Equal(known.path, path) }); i >= 0 {
		return l.list[i]
	}
	return nil
}

// ofValues adds the opposite of each boolean in the default values.
func (l *leaves) ofValues(path []string, vals map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(vals)) {
		at := append(slices.Clone(path), key)
		switch value := vals[key].(type) {
		case bool:
			l.add(at, !value)
		case map[string]any:
			l.ofValues(at, value)
		}
	}
}

// switched returns values with all booleans set to a value.
func (l *leaves) switched(to bool) map[string]any {
	vals := map[string]any{}
	for _, leaf := range l.list {
		if slices.ContainsFunc(leaf.values, func(v any) bool { _, is := v.(bool); return is }) {
			vals = over(vals, values.Nest(leaf.path, to))
		}
	}
	return vals
}

// ofSchema adds the values that a schema lists, or only those of its enums.
func (l *leaves) ofSchema(data []byte, enums bool) error {
	if len(data) == 0 {
		return nil
	}
	var schema map[string]any
	if err := yaml.Unmarshal(data, &schema); err != nil {
		return fmt.Errorf("values.schema.json: %w", err)
	}
	reader := schemaReader{root: schema, leaves: l, enums: enums}
	reader.read(nil, schema, 0)
	return nil
}

// over merges values over others, without changing either.
func over(vals, more map[string]any) map[string]any {
	return values.Merge(values.Normalize(vals), more)
}
