package chart

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	yaml "sigs.k8s.io/yaml/goyaml.v3"

	"github.com/chartwright/chartwright/internal/chart/render"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/helm/engine"
)

// ErrRender is the error for a chart that cannot be rendered with the given values, or
// that renders something other than objects. Nothing was written to the cluster.
var ErrRender = errors.New("the chart cannot be rendered")

// Prepared is a chart with processed dependencies, and its merged values.
type Prepared struct {
	Chart  *engine.Chart
	values engine.Values
}

// Prepare processes the dependencies of the chart with the given values, and validates
// the merged values by the chart's schemas. The templates get the given numbers.
func (c *Chart) Prepare(given map[string]any, numbers values.Numbers) (*Prepared, error) {
	return c.prepare(Offline{Values: given, Numbers: numbers})
}

func (c *Chart) prepare(of Offline) (*Prepared, error) {
	given := of.Numbers.For(of.Values)
	processed := clone(c.chart)
	if err := engine.ProcessDependenciesWithMerge(processed, engine.Values(given)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRender, err)
	}
	merged, err := engine.CoalesceValues(processed, given)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRender, err)
	}
	if !of.Unchecked {
		if err := c.schemas.validate(processed, merged); err != nil {
			return nil, err
		}
	}
	return &Prepared{Chart: processed, values: merged}, nil
}

// FirstRevision returns the options of an install, which templates can read as .Release.
func FirstRevision(release, namespace string) engine.ReleaseOptions {
	return engine.ReleaseOptions{Name: release, Namespace: namespace, Revision: 1, IsInstall: true}
}

// ExecuteTemplates renders a chart within limits and returns a chart whose templates are
// the rendered texts. Helm's engine, which has no limits, writes these texts unchanged.
func (c *Chart) ExecuteTemplates(ctx context.Context, in *Prepared, by *render.Renderer, options engine.ReleaseOptions, capabilities *engine.Capabilities, with render.Options) (*engine.Chart, error) {
	if needs := in.Chart.Metadata.KubeVersion; needs != "" && !engine.IsCompatibleRange(needs, capabilities.KubeVersion.String()) {
		// The action returns the error.
		return clone(c.chart), nil
	}
	files, err := c.execute(ctx, in, by, options, capabilities, with)
	if err != nil {
		return nil, err
	}
	return written(c.chart, in.Chart.Name(), files), nil
}

// execute executes the templates and returns the rendered files by name.
func (c *Chart) execute(ctx context.Context, in *Prepared, by *render.Renderer, options engine.ReleaseOptions, capabilities *engine.Capabilities, with render.Options) (map[string]string, error) {
	e, err := c.execution(in, options, capabilities)
	if err != nil {
		return nil, err
	}
	files, err := e.run(ctx, by, with)
	// The first error is always the same, because the status shows it.
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if path.Base(name) == "NOTES.txt" {
			continue
		}
		if err := separated(files[name]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return files, err
}

// separated returns an error if a document has the keys of two objects, such as the output of a
// loop without "---". Helm would install the last one, and lose the others in silence.
func separated(text string) error {
	const key = "apiVersion"
	if strings.Count(text, key+":") < 2 {
		return nil
	}
	line := 1
	for _, document := range strings.SplitAfter(text, "\n---") {
		var read yaml.Node
		if strings.Count("\n"+document, "\n"+key+":") > 1 && yaml.Unmarshal([]byte(strings.TrimSuffix(document, "---")), &read) == nil && len(read.Content) == 1 {
			seen := false
			for i, node := range read.Content[0].Content {
				if i%2 == 0 && node.Value == key {
					if seen {
						return fmt.Errorf("line %d of the output sets %s again: write a line --- before each object", line+node.Line-1, key)
					}
					seen = true
				}
			}
		}
		line += strings.Count(document, "\n")
	}
	return nil
}

// execution is the input of one render.
type execution struct {
	chart *Chart
	in    *Prepared
	// dot is the dot of the outermost chart's templates.
	dot engine.Values
	// files are the templates, and scopes holds their scopes by name.
	files  []render.File
	scopes map[string]scope
}

func (c *Chart) execution(in *Prepared, options engine.ReleaseOptions, capabilities *engine.Capabilities) (*execution, error) {
	top, err := c.files.scopeOf(in.Chart, engine.Values{
		"Release": map[string]any{
			"Name": options.Name, "Namespace": options.Namespace, "Service": "Helm",
			"IsUpgrade": options.IsUpgrade, "IsInstall": options.IsInstall, "Revision": options.Revision,
		},
		"Capabilities": capabilities, "Values": in.values,
	})
	if err != nil {
		return nil, err
	}
	e := &execution{chart: c, in: in, dot: top, scopes: map[string]scope{}}
	e.files = templateFiles(in.Chart, top, e.scopes, nil)
	return e, nil
}

func (e *execution) run(ctx context.Context, by *render.Renderer, with render.Options) (map[string]string, error) {
	set, err := e.chart.parsed.set(e.files, with.Trace != nil)
	if err != nil {
		return nil, err
	}
	with.OfChart = func(text string) bool { return hasFile(e.in.Chart, text) }
	return by.Files(ctx, set, func(name string) any {
		scope := e.scopes[name]
		scope.dot["Template"] = engine.Values{"Name": name, "BasePath": scope.basePath}
		return scope.dot
	}, with)
}

// templateFiles adds the templates of a chart and its subcharts, with the names that
// Helm's engine uses, and their scopes.
func templateFiles(c *engine.Chart, dot engine.Values, scopes map[string]scope, files []render.File) []render.File {
	folder := c.ChartFullPath()
	own := scope{dot: dot, basePath: path.Join(folder, "templates")}
	library := strings.EqualFold(c.Metadata.Type, "library")
	for _, template := range c.Templates {
		if library && !strings.HasPrefix(path.Base(template.Name), "_") {
			continue
		}
		file := render.File{Name: path.Join(folder, template.Name), Text: string(template.Data)}
		if _, twice := scopes[file.Name]; twice {
			// The last file of a name has precedence.
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

// written returns a clone of the chart whose templates write the files unchanged. All
// templates belong to the chart itself and keep their names.
func written(c *engine.Chart, name string, files map[string]string) *engine.Chart {
	fixed := clone(c)
	for _, c := range withDependencies(fixed) {
		c.Templates = nil
	}
	for file, text := range files {
		fixed.Templates = append(fixed.Templates, &engine.File{
			Name: strings.TrimPrefix(file, name+"/"), Data: []byte(strings.ReplaceAll(text, "{{", `{{"{{"}}`)),
		})
	}
	return fixed
}

// hasFile reports whether a text is a file of the chart or of a subchart.
func hasFile(c *engine.Chart, text string) bool {
	for _, c := range withDependencies(c) {
		if slices.ContainsFunc(c.Files, func(file *engine.File) bool { return string(file.Data) == text }) {
			return true
		}
	}
	return false
}
