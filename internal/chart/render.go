package chart

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"

	"github.com/chartwright/chartwright/internal/chart/render"
)

// ErrRender marks an action that ended before anything was written, because
// the chart cannot be rendered with these values or renders what is no object.
var ErrRender = errors.New("the chart cannot be rendered")

// Prepared is a chart that is going to be rendered, whose dependencies are
// processed, with all values that it gets.
type Prepared struct {
	Chart  *helmchart.Chart
	values chartutil.Values
}

// Prepare returns what the chart makes of given values, if its schemas take them.
func (c *Chart) Prepare(given map[string]any) (*Prepared, error) {
	in, err := c.unchecked(given)
	if err != nil {
		return nil, err
	}
	if err := c.schemas.validate(in.Chart, in.values); err != nil {
		return nil, err
	}
	return in, nil
}

// unchecked is input for values that the schemas need not take.
func (c *Chart) unchecked(given map[string]any) (*Prepared, error) {
	processed := clone(c.chart)
	if err := chartutil.ProcessDependenciesWithMerge(processed, chartutil.Values(given)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRender, err)
	}
	merged, err := chartutil.CoalesceValues(processed, given)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRender, err)
	}
	return &Prepared{Chart: processed, values: merged}, nil
}

// FirstRevision is what templates see as .Release of an install.
func FirstRevision(release, namespace string) chartutil.ReleaseOptions {
	return chartutil.ReleaseOptions{Name: release, Namespace: namespace, Revision: 1, IsInstall: true}
}

// ExecuteTemplates renders a chart within limits, and returns it with what it has
// rendered in the place of its templates: Helm's engine, which knows no limits,
// writes it once more as it is.
func (c *Chart) ExecuteTemplates(ctx context.Context, in *Prepared, by *render.Renderer, options chartutil.ReleaseOptions, capabilities *chartutil.Capabilities, with render.Options) (*helmchart.Chart, error) {
	if needs := in.Chart.Metadata.KubeVersion; needs != "" && !chartutil.IsCompatibleRange(needs, capabilities.KubeVersion.String()) {
		// The action says so.
		return clone(c.chart), nil
	}
	files, err := c.execute(ctx, in, by, options, capabilities, with)
	if err != nil {
		return nil, err
	}
	return written(c.chart, in.Chart.Name(), files), nil
}

// render executes the templates.
func (c *Chart) execute(ctx context.Context, in *Prepared, by *render.Renderer, options chartutil.ReleaseOptions, capabilities *chartutil.Capabilities, with render.Options) (map[string]string, error) {
	top, err := c.files.scopeOf(in.Chart, chartutil.Values{
		"Release": map[string]any{
			"Name": options.Name, "Namespace": options.Namespace, "Service": "Helm",
			"IsUpgrade": options.IsUpgrade, "IsInstall": options.IsInstall, "Revision": options.Revision,
		},
		"Capabilities": capabilities, "Values": in.values,
	})
	if err != nil {
		return nil, err
	}
	scopes := map[string]scope{}
	set, err := c.parsed.set(templateFiles(in.Chart, top, scopes, nil))
	if err != nil {
		return nil, err
	}
	with.OfChart = func(text string) bool { return hasFile(in.Chart, text) }
	return by.Files(ctx, set, func(name string) any {
		scope := scopes[name]
		scope.dot["Template"] = chartutil.Values{"Name": name, "BasePath": scope.basePath}
		return scope.dot
	}, with)
}

// templateFiles adds the templates of a chart and its subcharts, as Helm's
// engine names them, and what they see.
func templateFiles(c *helmchart.Chart, dot chartutil.Values, scopes map[string]scope, files []render.File) []render.File {
	folder := c.ChartFullPath()
	own := scope{dot: dot, basePath: path.Join(folder, "templates")}
	library := strings.EqualFold(c.Metadata.Type, "library")
	for _, template := range c.Templates {
		if library && !strings.HasPrefix(path.Base(template.Name), "_") {
			continue
		}
		file := render.File{Name: path.Join(folder, template.Name), Text: string(template.Data)}
		if _, twice := scopes[file.Name]; twice {
			// The last one counts.
			at := slices.IndexFunc(files, func(other render.File) bool { return other.Name == file.Name })
			files = slices.Delete(files, at, at+1)
		}
		scopes[file.Name] = own
		files = append(files, file)
	}
	below, _ := dot["Subcharts"].(map[string]any)
	for _, child := range c.Dependencies() {
		inner, _ := below[child.Name()].(map[string]any)
		files = templateFiles(child, inner, scopes, files)
	}
	return files
}

// written returns a clone of the chart whose templates, all in its own folder,
// write the files as they are. Their names stay what they were.
func written(c *helmchart.Chart, name string, files map[string]string) *helmchart.Chart {
	fixed := clone(c)
	for _, c := range withDependencies(fixed) {
		c.Templates = nil
	}
	for file, text := range files {
		fixed.Templates = append(fixed.Templates, &helmchart.File{
			Name: strings.TrimPrefix(file, name+"/"), Data: []byte(strings.ReplaceAll(text, "{{", `{{"{{"}}`)),
		})
	}
	return fixed
}

// hasFile reports whether a text is a file of the chart or of a subchart.
func hasFile(c *helmchart.Chart, text string) bool {
	for _, c := range withDependencies(c) {
		if slices.ContainsFunc(c.Files, func(file *helmchart.File) bool { return string(file.Data) == text }) {
			return true
		}
	}
	return false
}
