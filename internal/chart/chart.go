package chart

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/chartwright/chartwright/internal/chart/analysis"
	"github.com/chartwright/chartwright/internal/chart/values"
)

// Chart is a loaded chart. It is safe for concurrent use, since every render
// works on a clone.
type Chart struct {
	chart *helmchart.Chart
	// schemas holds the compiled values.schema.json of the chart and its
	// subcharts, by their path.
	schemas schemas
	// Digest identifies the chart's files: equal digests render alike.
	Digest string
	// Features is what the templates use beyond the values, unless the values of
	// a release execute more, see FeaturesOf.
	Features analysis.Features
	usage    analysis.Usage
	// templates are those of the chart and its subcharts.
	templates []analysis.File
	// examples are the files ci/*-values.yaml, by their names.
	examples map[string][]byte
	// parsed are the templates as they are executed.
	parsed parsed
	// files are what the templates see as .Files.
	files shownFiles
}

// FeaturesOf returns what the templates use beyond these values of a release.
func (c *Chart) FeaturesOf(given map[string]any) analysis.Features { return c.usage.Features(given) }

// MayReadCapabilities reports whether any release of the chart can depend on
// .Capabilities.
func (c *Chart) MayReadCapabilities() bool {
	return c.Features.Capabilities() || c.usage.All.Capabilities()
}

// Clone returns a copy of the chart that a render may change.
func (c *Chart) Clone() *helmchart.Chart { return clone(c.chart) }

// Name returns the name in Chart.yaml.
func (c *Chart) Name() string { return c.chart.Metadata.Name }

// Version returns the version in Chart.yaml.
func (c *Chart) Version() string { return c.chart.Metadata.Version }

// Description returns the description in Chart.yaml.
func (c *Chart) Description() string { return c.chart.Metadata.Description }

// Schema returns the chart's own values.schema.json, nil if it has none.
// Nobody may change it.
func (c *Chart) Schema() []byte { return c.chart.Schema }

// Templates returns the parsed templates of the chart and its subcharts, but
// for their notes. Nobody may change them.
func (c *Chart) Templates() []analysis.File { return c.templates }

// Notes parses the notes of the chart and its subcharts. They are templates that
// can fail.
func (c *Chart) Notes() ([]analysis.File, error) { return parseTemplates(c.chart, true) }

// Examples returns values that the chart's author tries it with, by the names
// of their files: ci/*-values.yaml. The caller may change them.
func (c *Chart) Examples() (map[string]map[string]any, error) {
	found := map[string]map[string]any{}
	for name, data := range c.examples {
		vals, err := chartutil.ReadValues(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		found[name] = values.Normalize(vals)
	}
	return found, nil
}

// Subcharts returns the keys under which subcharts take their values, whether
// they are on or off.
func (c *Chart) Subcharts() []string {
	return slices.Sorted(maps.Keys(subcharts(c.chart)))
}

// HasTags reports whether the values can turn subcharts on and off by tags.
func (c *Chart) HasTags() bool {
	return slices.ContainsFunc(c.chart.Metadata.Dependencies, func(d *helmchart.Dependency) bool { return len(d.Tags) > 0 })
}

// Values returns the values that hold where a release sets none: those of the
// chart over those of its subcharts, whether these are on or off. The caller
// may change them.
func (c *Chart) Values() (map[string]any, error) {
	processed := clone(c.chart)
	// For the values that the chart imports from subcharts.
	if err := chartutil.ProcessDependenciesWithMerge(processed, chartutil.Values{}); err != nil {
		return nil, err
	}
	return withSubcharts(processed.Values, c.chart), nil
}

// withSubcharts lays the values of a chart over those of its subcharts.
func withSubcharts(vals map[string]any, c *helmchart.Chart) map[string]any {
	under := map[string]any{}
	for key, child := range subcharts(c) {
		under[key] = withSubcharts(child.Values, child)
	}
	// Merge makes numbers equal in place, so it gets a copy.
	return values.Merge(under, runtime.DeepCopyJSON(vals))
}

// subcharts returns the subcharts by the keys of their values: by alias, by
// name where Chart.yaml gives no alias or does not list them at all.
func subcharts(c *helmchart.Chart) map[string]*helmchart.Chart {
	byName, keyed := map[string]*helmchart.Chart{}, map[string]*helmchart.Chart{}
	for _, child := range c.Dependencies() {
		byName[child.Name()] = child
	}
	unlisted := maps.Clone(byName)
	for _, d := range c.Metadata.Dependencies {
		if child := byName[d.Name]; child != nil {
			delete(unlisted, d.Name)
			keyed[cmp.Or(d.Alias, d.Name)] = child
		}
	}
	maps.Copy(keyed, unlisted)
	return keyed
}

// withDependencies returns a chart and its subcharts, at any depth, each after its
// parent. The keys are their folders, relative to the chart and with a trailing
// slash.
func withDependencies(c *helmchart.Chart) iter.Seq2[string, *helmchart.Chart] {
	return func(yield func(string, *helmchart.Chart) bool) {
		if !yield("", c) {
			return
		}
		for _, child := range c.Dependencies() {
			for folder, c := range withDependencies(child) {
				if !yield("charts/"+child.Name()+"/"+folder, c) {
					return
				}
			}
		}
	}
}

// parseTemplates parses the templates of a chart and its subcharts: either the
// notes or all others.
func parseTemplates(c *helmchart.Chart, notes bool) ([]analysis.File, error) {
	var files []analysis.File
	for folder, c := range withDependencies(c) {
		for _, template := range c.Templates {
			if strings.HasSuffix(template.Name, "/NOTES.txt") != notes {
				continue
			}
			file, err := analysis.Parse(folder+template.Name, string(template.Data))
			if err != nil {
				return nil, err
			}
			files = append(files, file)
		}
	}
	return files, nil
}

// examples returns the files of values to try a chart with.
func examples(c *helmchart.Chart) map[string][]byte {
	found := map[string][]byte{}
	for _, file := range c.Files {
		if ok, _ := path.Match(examplePattern, file.Name); ok {
			found[file.Name] = file.Data
		}
	}
	return found
}

// digestFiles covers what a render can depend on. Templates may read any file
// by .Files, so only what no template reads is left out.
func digestFiles(files []*loader.BufferedFile) string {
	parts := make([]string, 0, len(files))
	for _, f := range files {
		if !unread(f.Name) {
			parts = append(parts, values.DigestOf(f.Name, string(f.Data)))
		}
	}
	slices.Sort(parts)
	return values.DigestOf(parts...)
}

// unread reports whether no template reads a file of a chart.
func unread(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	return first == "ci" || path.Dir(name) == "." && (strings.HasPrefix(name, "README") || strings.HasPrefix(name, "LICENSE"))
}

// clone returns a chart that a render may change: Helm drops subcharts that
// the values turn off, renames aliased ones and merges imported values. What
// it only reads is shared.
func clone(c *helmchart.Chart) *helmchart.Chart {
	copied := *c
	metadata := *c.Metadata
	metadata.Dependencies = make([]*helmchart.Dependency, len(c.Metadata.Dependencies))
	for i, d := range c.Metadata.Dependencies {
		dependency := *d
		metadata.Dependencies[i] = &dependency
	}
	// A template that sorts them does so in place.
	metadata.Keywords, metadata.Sources = slices.Clone(metadata.Keywords), slices.Clone(metadata.Sources)
	copied.Metadata = &metadata
	children := make([]*helmchart.Chart, len(c.Dependencies()))
	for i, child := range c.Dependencies() {
		children[i] = clone(child)
	}
	copied.SetDependencies(children...)
	return &copied
}

// readFeatures finds the features that a chart and its subcharts use.
func readFeatures(c *helmchart.Chart, templates []analysis.File) analysis.Usage {
	source := analysis.Source{Templates: templates}
	for _, c := range withDependencies(c) {
		analysis.EachText(c.Values, func(text string) { source.Values = append(source.Values, text) })
		for _, file := range c.Files {
			if !unread(file.Name) {
				source.Files = append(source.Files, string(file.Data))
			}
		}
		source.ValuesFiles = append(source.ValuesFiles, string(rawFile(c, chartutil.ValuesfileName)))
	}
	return analysis.ReadFeatures(source)
}

// rawFile returns a file of a chart as it was loaded, nil if there is none.
func rawFile(c *helmchart.Chart, name string) []byte {
	for _, file := range c.Raw {
		if file.Name == name {
			return file.Data
		}
	}
	return nil
}
