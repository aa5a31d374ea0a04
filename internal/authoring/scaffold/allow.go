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

// Need is the access that a chart needs outside the namespace of its release.
type Need struct {
	watches.Allow
	// Notes are about access that cannot be determined.
	Notes []string
	// because holds what needs the access: for a cluster-scoped kind, for
	// otherNamespaces, and for lookup.
	because map[string][]string
}

// Keys of the allow block.
const (
	otherNamespaces = "otherNamespaces"
	clusterScoped   = "clusterScoped"
	lookupScope     = "lookup"
)

func (n *Need) addf(key, format string, args ...any) {
	if cause := fmt.Sprintf(format, args...); !slices.Contains(n.because[key], cause) {
		n.because[key] = append(n.because[key], cause)
	}
}

// Allow returns the access that a kind needs for the objects that its chart renders
// with four kinds of values: the defaults, the minimal spec, the examples of the chart,
// and the given values. The kind's overrides apply to all of them. The finder can be nil.
func Allow(served catalog.Kind, finder *landing.Finder, given ...map[string]any) (Need, error) {
	loaded := served.Chart
	need := Need{because: map[string][]string{}}
	isClusterScoped, err := loaded.ClusterScoped()
	if err != nil {
		return need, err
	}
	trials, err := loaded.Examples()
	if err != nil {
		return need, err
	}
	definition, _, err := crd.GenerateWith(served, finder)
	if err != nil {
		return need, err
	}
	// The sample reports an error.
	minimal, _ := minimalSpec(kind{Kind: served, definition: definition})
	for i, values := range given {
		trials[fmt.Sprintf("given values %d", i+1)] = values
	}

	kinds := sets.New[string]()
	try := func(values map[string]any, with string) {
		rendered, err := loaded.Render(chart.Offline{
			Release: trialRelease, Namespace: trialNamespace, Unchecked: true,
			Values: values, Numbers: served.TemplateNumbers(), APIVersions: loaded.Features.APIs,
		})
		if err != nil {
			// Charts with required values do not render with their defaults.
			return
		}
		for _, object := range slices.Concat(rendered.Objects, rendered.Hooks) {
			kind := object.GroupVersionKind().GroupKind()
			switch namespace := object.GetNamespace(); {
			case isClusterScoped(kind):
				kinds.Insert(kind.String())
				need.addf(kind.String(), "%s %s (%s%s)", kind.Kind, object.GetName(), object.Source, with)
			case namespace != "" && namespace != trialNamespace:
				need.OtherNamespaces = true
				need.addf(otherNamespaces, "%s %s in namespace %s (%s%s)", kind.Kind, object.GetName(), namespace, object.Source, with)
			}
		}
	}
	with := func(trial map[string]any) map[string]any {
		return values.Merge(values.Merge(map[string]any{}, trial), served.Overrides)
	}
	try(with(nil), "")
	try(with(minimal), "")
	for _, name := range slices.Sorted(maps.Keys(trials)) {
		try(with(trials[name]), ", with "+name)
	}
	need.ClusterScoped = sets.List(kinds)
	need.lookups(loaded)
	return need, nil
}

// lookups adds the lookup scope that the templates need, and notes about lookups in
// computed namespaces.
func (n *Need) lookups(loaded *chart.Chart) {
	for _, call := range analysis.ReadCalls(loaded.Templates()).Named("lookup", 1) {
		if len(call.Args) > 2 {
			if _, literal := analysis.Literal(call.Args[2]); literal {
				n.Lookup = watches.LookupAll
				n.addf(lookupScope, "lookup in %s:%d", call.File.Path, call.Line())
				continue
			}
			if analysis.Field(call.Args[2]) == "Release.Namespace" {
				continue
			}
		}
		n.Notes = append(n.Notes, fmt.Sprintf("%s:%d: lookup in a computed namespace: if it can differ from the release's namespace, the entry needs allow: {lookup: all}",
			call.File.Path, call.Line()))
	}
}

// Reasons returns the lines that are missing in an allow block, each followed by what
// needs it.
func (n Need) Reasons(have watches.Allow) []string {
	var reasons []string
	for _, line := range have.Missing(n.Allow) {
		reasons = append(reasons, "  "+line)
		key, _, _ := strings.Cut(line, ":")
		keys := []string{key}
		if key == clusterScoped {
			keys = sets.List(sets.New(n.ClusterScoped...).Delete(have.ClusterScoped...))
		}
		for _, key := range keys {
			reasons = append(reasons, "    for "+some(n.because[key]))
		}
	}
	return reasons
}

// AllowLines returns the allow block as lines of a watches entry, indented for a list
// whose items start in the first column. It is empty for an empty block.
func AllowLines(allow watches.Allow) (string, error) {
	var e entry
	e.allow(allow)
	return e.lines("  ", "\n")
}
