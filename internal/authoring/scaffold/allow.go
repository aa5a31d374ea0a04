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
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/watches"
)

// Where a chart is rendered to see what it needs to be allowed.
const (
	trialRelease   = "release"
	trialNamespace = "namespace-of-the-release"
)

// Allow returns what a kind has to be allowed for its chart to install what it
// renders with its defaults, with the least that it takes, with the values that
// its author tries it with and with those that are given here, each with the
// kind's overrides over it; and what could not be found out.
func Allow(served catalog.Kind, given ...map[string]any) (watches.Allow, []string, error) {
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
	definition, _, err := crd.Generate(served)
	if err != nil {
		return allow, nil, err
	}
	// An error is reported with the sample.
	trials["the least"], _ = minimalSpec(kind{Kind: served, definition: definition})
	trials["the defaults"] = nil
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
			// A chart whose values have to be set renders nothing by default.
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

// lookups returns what the templates need to be allowed to read: nothing but
// the release's namespace, unless a call of lookup names another.
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
		notes = append(notes, fmt.Sprintf("%s:%d: lookup in a namespace that is computed: if it is another than the release's, the entry needs allow: {lookup: all}",
			call.File.Path, call.Line()))
	}
	return scope, notes
}

// AllowLines returns the allow block as lines of an entry of the watches file, of
// which each item of the list begins with "- " in the first column. It is empty if
// nothing needs to be allowed.
func AllowLines(allow watches.Allow) (string, error) {
	var e entry
	e.allow(allow)
	return e.lines("  ", "\n")
}

// Lacks returns the lines of the allow block that an entry does not have.
func Lacks(have, need watches.Allow) []string {
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
