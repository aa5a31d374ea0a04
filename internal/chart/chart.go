package chart

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/chartwright/chartwright/internal/chart/analysis"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/helm/engine"
)

// Chart is a loaded chart. It is safe for concurrent use, since every render
// works on a clone.
type Chart struct {
	chart *engine.Chart
	// schemas holds the compiled values.schema.json of the chart and its
	// subcharts, by their path.
	schemas schemas
	// Elsewhere are the references of these schemas to other documents.
	Elsewhere []Reference
	// Digest is the digest of the files that a render can depend on.
	Digest string
	// Features are the features that every release of the chart uses. The values of a
	// release can use more, see FeaturesOf.
	Features analysis.Features
	usage    analysis.Usage
	// templates caches the syntax trees of the chart and its subcharts, except notes.
	templates syntax
	// examples are the files ci/*-values.yaml, by name.
	examples map[string][]byte
	// parsed caches parsed templates for rendering.
	parsed parsed
	// files caches .Files of the templates.
	files shownFiles
}

// FeaturesOf returns the features that a release with these values uses.
func (c *Chart) FeaturesOf(given map[string]any) analysis.Features { return c.usage.Features(given) }

// MayReadCapabilities reports whether any release of the chart can depend on
// .Capabilities.
func (c *Chart) MayReadCapabilities() bool {
	return c.Features.Capabilities() || c.usage.All.Capabilities()
}

// Clone returns a copy of the chart that a render may change.
func (c *Chart) Clone() *engine.Chart { return clone(c.chart) }

// Name returns the name in Chart.yaml.
func (c *Chart) Name() string { return c.chart.Metadata.Name }

// Version returns the version in Chart.yaml.
func (c *Chart) Version() string { return c.chart.Metadata.Version }

// Description returns the description in Chart.yaml.
func (c *Chart) Description() string { return c.chart.Metadata.Description }

// Schema returns the chart's own values.schema.json, or nil. The caller must not change
// it.
func (c *Chart) Schema() []byte { return c.chart.Schema }

// Templates returns the parsed templates of the chart and its subcharts, except notes.
// The caller must not change them.
func (c *Chart) Templates() []analysis.File { return c.templates.of(c.chart) }

// Contains reports whether a template or a default value of the chart or of a subchart contains
// a text.
func (c *Chart) Contains(text string) bool {
	var contains func(c *engine.Chart) bool
	contains = func(c *engine.Chart) bool {
		return strings.Contains(fmt.Sprint(c.Values), text) || slices.ContainsFunc(c.Templates, func(f *engine.File) bool { return bytes.Contains(f.Data, []byte(text)) }) ||
			slices.ContainsFunc(c.Dependencies(), contains)
	}
	return contains(c.chart)
}

// Notes returns the parsed notes of the chart and its subcharts.
func (c *Chart) Notes() ([]analysis.File, error) { return parseTemplates(c.chart, true) }

// Examples returns the example values of the chart by file name, ci/*-values.yaml. The
// caller may change them.
func (c *Chart) Examples() (map[string]map[string]any, error) {
	found := map[string]map[string]any{}
	for name, data := range c.examples {
		vals, err := engine.ReadValues(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		found[name] = values.Normalize(vals)
	}
	return found, nil
}

// Subcharts returns the keys of the values of all subcharts, enabled or not.
func (c *Chart) Subcharts() []string {
	return slices.Sorted(maps.Keys(subcharts(c.chart)))
}

// HasTags reports whether tags in the values enable or disable subcharts.
func (c *Chart) HasTags() bool {
	return slices.ContainsFunc(c.chart.Metadata.Dependencies, func(d *engine.Dependency) bool { return len(d.Tags) > 0 })
}

// Values returns the default values of the chart, merged over the default values of its
// subcharts, enabled or not. The caller may change them.
func (c *Chart) Values() (map[string]any, error) {
	processed := clone(c.chart)
	// This adds the values that the chart imports from subcharts.
	if err := engine.ProcessDependenciesWithMerge(processed, engine.Values{}); err != nil {
		return nil, err
	}
	return withSubcharts(processed.Values, c.chart), nil
}

// withSubcharts merges the values of a chart over the values of its subcharts.
func withSubcharts(vals map[string]any, c *engine.Chart) map[string]any {
	under := map[string]any{}
	for key, child := range subcharts(c) {
		under[key] = withSubcharts(child.Values, child)
	}
	// Merge changes its arguments.
	return values.Merge(under, runtime.DeepCopyJSON(vals))
}

// subcharts returns the subcharts by the keys of their values: the alias or, without an
// entry or an alias in Chart.yaml, the name.
func subcharts(c *engine.Chart) map[string]*engine.Chart {
	byName, keyed := map[string]*engine.Chart{}, map[string]*engine.Chart{}
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
func withDependencies(c *engine.Chart) iter.Seq2[string, *engine.Chart] {
	return func(yield func(string, *engine.Chart) bool) {
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
func parseTemplates(c *engine.Chart, notes bool) ([]analysis.File, error) {
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

// examples returns the files with example values.
func examples(c *engine.Chart) map[string][]byte {
	found := map[string][]byte{}
	for _, file := range c.Files {
		if ok, _ := path.Match(examplePattern, file.Name); ok {
			found[file.Name] = file.Data
		}
	}
	return found
}

// digestFiles returns a digest of the files that a render can depend on. These are all
// files except unread ones, because templates can read any file by .Files.
func digestFiles(files []*engine.BufferedFile) string {
	parts := make([]string, 0, len(files))
	for _, f := range files {
		if !unread(f.Name) {
			parts = append(parts, values.DigestOf([]byte(f.Name), f.Data))
		}
	}
	slices.Sort(parts)
	return values.DigestOf(parts...)
}

// FilesDigest returns a digest of all files of the chart and its subcharts.
func (c *Chart) FilesDigest() string {
	parts := make([]string, 0, len(c.chart.Raw))
	for _, f := range c.chart.Raw {
		parts = append(parts, values.DigestOf([]byte(f.Name), f.Data))
	}
	slices.Sort(parts)
	return values.DigestOf(parts...)
}

// unread reports whether a file of a chart is irrelevant for renders: an example, a
// README or a license.
func unread(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	return first == "ci" || path.Dir(name) == "." && (strings.HasPrefix(name, "README") || strings.HasPrefix(name, "LICENSE"))
}

// clone returns a copy of a chart that a render may change: Helm drops disabled
// subcharts, renames aliased ones and merges imported values. The copy shares the parts
// that Helm only reads.
func clone(c *engine.Chart) *engine.Chart {
	copied := *c
	metadata := *c.Metadata
	metadata.Dependencies = make([]*engine.Dependency, len(c.Metadata.Dependencies))
	for i, d := range c.Metadata.Dependencies {
		dependency := *d
		metadata.Dependencies[i] = &dependency
	}
	// A template can sort these lists in place.
	metadata.Keywords, metadata.Sources = slices.Clone(metadata.Keywords), slices.Clone(metadata.Sources)
	copied.Metadata = &metadata
	children := make([]*engine.Chart, len(c.Dependencies()))
	for i, child := range c.Dependencies() {
		children[i] = clone(child)
	}
	copied.SetDependencies(children...)
	return &copied
}

// readFeatures returns the features that a chart and its subcharts use.
func readFeatures(c *engine.Chart, templates []analysis.File) analysis.Usage {
	source := analysis.Source{Templates: templates}
	for _, c := range withDependencies(c) {
		analysis.EachText(c.Values, func(text string) { source.Values = append(source.Values, text) })
		for _, file := range c.Files {
			// Most files have no actions, such as large CRDs, and need no copy.
			if !unread(file.Name) && bytes.Contains(file.Data, []byte("{{")) {
				source.Files = append(source.Files, string(file.Data))
			}
		}
		source.ValuesFiles = append(source.ValuesFiles, string(rawFile(c, engine.ValuesfileName)))
	}
	return analysis.ReadFeatures(source)
}

// rawFile returns the content of a file of a chart, or nil.
func rawFile(c *engine.Chart, name string) []byte {
	for _, file := range c.Raw {
		if file.Name == name {
			return file.Data
		}
	}
	return nil
}
