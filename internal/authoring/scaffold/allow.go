package scaffold

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/analysis"
	"github.com/chartwright/chartwright/internal/chart/crd"
	"github.com/chartwright/chartwright/internal/chart/landing"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/watches"
)

// Release in trial renders.
const (
	trialRelease   = "release"
	trialNamespace = "namespace-of-the-release"
)

// Allow returns the allow block that a kind needs for the objects that its chart renders
// with four kinds of values: the defaults, the minimal spec, the examples of the chart,
// and the given values. The kind's overrides apply to all of them. It also returns
// notes about access that cannot be determined. The finder can be nil.
func Allow(served catalog.Kind, finder *landing.Finder, given ...map[string]any) (watches.Allow, []string, error) {
	loaded := served.Chart
	var allow watches.Allow
	clusterScoped, err := loaded.ClusterScoped()
	if err != nil {
		return allow, nil, err
	}
	trials, err := loaded.Examples()
	if err != nil {
		return allow, nil, err
	}
	definition, _, err := crd.GenerateWith(served, finder)
	if err != nil {
		return allow, nil, err
	}
	// The sample reports an error.
	trials["minimal spec"], _ = minimalSpec(kind{Kind: served, definition: definition})
	trials["defaults"] = nil
	for i, values := range given {
		trials[fmt.Sprintf("given %d", i)] = values
	}

	kinds := sets.New[string]()
	for _, name := range slices.Sorted(maps.Keys(trials)) {
		rendered, err := loaded.Render(chart.Offline{
			Release: trialRelease, Namespace: trialNamespace, Unchecked: true,
			Values: values.Merge(values.Merge(map[string]any{}, trials[name]), served.Overrides), APIVersions: loaded.Features.APIs,
		})
		if err != nil {
			// Charts with required values do not render with their defaults.
			continue
		}
		for _, object := range slices.Concat(rendered.Objects, rendered.Hooks) {
			kind := object.GroupVersionKind().GroupKind()
			switch namespace := object.GetNamespace(); {
			case clusterScoped(kind):
				kinds.Insert(kind.String())
			case namespace != "" && namespace != trialNamespace:
				allow.OtherNamespaces = true
			}
		}
	}
	allow.ClusterScoped = slices.Sorted(maps.Keys(kinds))
	var notes []string
	allow.Lookup, notes = lookups(loaded)
	return allow, notes, nil
}

// lookups returns the lookup scope that the templates need, and notes about lookups in
// computed namespaces.
func lookups(loaded *chart.Chart) (watches.LookupScope, []string) {
	var scope watches.LookupScope
	var notes []string
	for _, call := range analysis.ReadCalls(loaded.Templates()).Named("lookup", 1) {
		if len(call.Args) > 2 {
			if _, literal := analysis.Literal(call.Args[2]); literal {
				scope = watches.LookupAll
				continue
			}
			if analysis.Field(call.Args[2]) == "Release.Namespace" {
				continue
			}
		}
		notes = append(notes, fmt.Sprintf("%s:%d: lookup in a computed namespace: if it can differ from the release's namespace, the entry needs allow: {lookup: all}",
			call.File.Path, call.Line()))
	}
	return scope, notes
}

// AllowLines returns the allow block as lines of a watches entry, indented for a list
// whose items start in the first column. It is empty for an empty block.
func AllowLines(allow watches.Allow) (string, error) {
	var e entry
	e.allow(allow)
	return e.lines("  ", "\n")
}

// MissingAllow returns the lines that are missing in the allow block of an entry.
func MissingAllow(have, need watches.Allow) []string {
	var missing []string
	if need.OtherNamespaces && !have.OtherNamespaces {
		missing = append(missing, "otherNamespaces: true")
	}
	kinds := sets.List(sets.New(need.ClusterScoped...).Delete(have.ClusterScoped...))
	if len(kinds) > 0 {
		missing = append(missing, "clusterScoped: ["+strings.Join(kinds, ", ")+"]")
	}
	if need.Lookup == watches.LookupAll && have.Lookup != watches.LookupAll {
		missing = append(missing, "lookup: all")
	}
	return missing
}
