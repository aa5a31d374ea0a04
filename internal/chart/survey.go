package chart

import (
	"context"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/chartwright/chartwright/internal/chart/render"
	"github.com/chartwright/chartwright/internal/helm/engine"
)

// Survey renders a chart many times without a cluster, to find out which objects it can
// render. It decodes equal outputs of a template only once. After a change of values, it
// renders only the templates that read the changed values (Base.Change).
type Survey struct {
	chart *Chart
	// of describes each render, except for its values.
	of   Offline
	caps *engine.Capabilities
	// read holds the outputs that were decoded without an error, by file and text.
	read map[[2]string]bool
}

// Survey returns a Survey of the chart. Of the argument, it uses the fields Release,
// Namespace, Numbers, APIVersions, KubeVersion and Unchecked.
func (c *Chart) Survey(of Offline) (*Survey, error) {
	caps, err := of.capabilities()
	if err != nil {
		return nil, err
	}
	return &Survey{chart: c, of: of, caps: caps, read: map[[2]string]bool{}}, nil
}

// Found holds the objects and hooks of those templates whose output differs from all
// earlier renders of a survey.
type Found struct{ Objects, Hooks []RenderedObject }

// Render renders the chart. Errors wrap ErrInvalidValues or ErrRender.
func (s *Survey) Render(values map[string]any) (Found, error) {
	e, err := s.prepare(values)
	if err != nil {
		return Found{}, err
	}
	return s.run(e, render.Options{})
}

// Base is a render of a survey, and the values that each template has read.
type Base struct {
	survey *Survey
	// traced is false if the templates can depend on other values than on those that
	// they have read: the render failed, or the templates change values.
	traced bool
	trace  *render.Trace
	values map[string]any
	files  []render.File
}

// Base renders the chart, and remembers the values that each template reads. If the
// render fails, the result is a Base nevertheless.
func (s *Survey) Base(values map[string]any) (*Base, Found, error) {
	e, err := s.prepare(values)
	if err != nil {
		return &Base{survey: s}, Found{}, err
	}
	b := &Base{survey: s, trace: render.NewTrace(e.in.values), files: e.files}
	before := copyOf(e.dot)
	found, err := s.run(e, render.Options{Trace: b.trace})
	b.traced = err == nil && unchanged(before, e.dot)
	b.values, _ = before["Values"].(map[string]any)
	return b, found, err
}

// Change renders the chart with values that differ from those of the base. It finds the
// same objects as Survey.Render, but executes only templates that can depend on the
// difference.
func (b *Base) Change(values map[string]any) (Found, error) {
	e, err := b.survey.prepare(values)
	if err != nil {
		return Found{}, err
	}
	// Other values can enable other subcharts.
	if !b.traced || !slices.Equal(b.files, e.files) {
		return b.survey.run(e, render.Options{})
	}
	affected := b.trace.Affected(b.values, e.in.values)
	if affected.Len() == 0 {
		return Found{}, nil
	}
	before := copyOf(e.dot)
	found, err := b.survey.run(e, render.Options{Only: affected})
	if unchanged(before, e.dot) {
		return found, err
	}
	again, err := b.survey.Render(values)
	found.Objects, found.Hooks = append(found.Objects, again.Objects...), append(found.Hooks, again.Hooks...)
	return found, err
}

// Traced reports whether the render of the base succeeded and its templates changed no
// values.
func (b *Base) Traced() bool { return b.traced }

// ChangeEach renders templates with values that differ from those of a traced base, each
// template on its own, so that the error of one does not affect the others. It renders those
// of the templates in only that can depend on the difference, or all of them if only is nil.
// The error is that of the values.
func (b *Base) ChangeEach(values map[string]any, only sets.Set[string], do func(template string, found Found, err error)) error {
	e, err := b.survey.prepare(values)
	if err != nil {
		return err
	}
	templates := sets.New[string]()
	if slices.Equal(b.files, e.files) {
		templates = b.trace.Affected(b.values, e.in.values)
	} else {
		for _, file := range e.files {
			templates.Insert(file.Name)
		}
	}
	for _, template := range sets.List(templates) {
		if only != nil && !only.Has(template) || path.Base(template) == "NOTES.txt" {
			continue
		}
		found, err := b.survey.run(e, render.Options{Only: sets.New(template)})
		do(template, found, err)
	}
	return nil
}

func (s *Survey) prepare(values map[string]any) (*execution, error) {
	of := s.of
	of.Values = values
	in, err := s.chart.prepare(of)
	if err != nil {
		return nil, err
	}
	if needs := in.Chart.Metadata.KubeVersion; needs != "" && !engine.IsCompatibleRange(needs, s.caps.KubeVersion.String()) {
		return nil, fmt.Errorf("%w: the chart requires Kubernetes %s, got %s", ErrRender, needs, s.caps.KubeVersion.String())
	}
	return s.chart.execution(in, FirstRevision(s.of.Release, s.of.Namespace), s.caps)
}

// run executes templates, and decodes outputs that differ from all earlier ones.
func (s *Survey) run(e *execution, options render.Options) (Found, error) {
	options.Reused = &reused
	files, err := e.run(context.Background(), offline, options)
	if err != nil {
		return Found{}, fmt.Errorf("%w: %w", ErrRender, err)
	}
	var found Found
	read := sets.New[[2]string]()
	for _, file := range slices.Sorted(maps.Keys(files)) {
		key := [...]string{file, files[file]}
		if path.Base(file) == "NOTES.txt" || s.read[key] {
			continue
		}
		objects, hooks, err := readFile(s.chart.Name(), file, files[file])
		if err != nil {
			return Found{}, err
		}
		read.Insert(key)
		found.Objects, found.Hooks = append(found.Objects, objects...), append(found.Hooks, hooks...)
	}
	for key := range read {
		s.read[key] = true
	}
	return found, nil
}

// reused holds the certificates and keys in renders of surveys, because creating them takes
// most of the time of such a render.
var reused render.Reused

// readFile decodes the objects and hooks in the output of a template.
func readFile(chartName, file, text string) (objects, hooks []RenderedObject, err error) {
	events, manifests, err := engine.SortManifests(map[string]string{file: text}, nil, engine.InstallOrder)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrRender, err)
	}
	for _, manifest := range manifests {
		more, err := ObjectsOf(chartName, file, manifest.Content)
		if err != nil {
			return nil, nil, err
		}
		objects = append(objects, more...)
	}
	hooks, err = hookObjects(chartName, events)
	return objects, hooks, err
}

// copyOf copies the maps and lists in the dot of a chart's templates.
func copyOf(dot map[string]any) map[string]any {
	copied := make(map[string]any, len(dot))
	for key, value := range dot {
		copied[key] = copyValue(value)
	}
	return copied
}

func copyValue(value any) any {
	switch v := value.(type) {
	case engine.Values:
		return copyOf(v)
	case map[string]any:
		return copyOf(v)
	case []any:
		copied := make([]any, len(v))
		for i := range v {
			copied[i] = copyValue(v[i])
		}
		return copied
	}
	return value
}

// unchanged reports whether templates have changed nothing in a dot since it was copied,
// except what every render sets.
func unchanged(before, dot map[string]any) bool {
	now := copyOf(dot)
	withoutTemplate(now)
	withoutTemplate(before)
	return reflect.DeepEqual(before, now)
}

func withoutTemplate(dot map[string]any) {
	delete(dot, "Template")
	below, _ := dot["Subcharts"].(map[string]any)
	for _, child := range below {
		if inner, ok := child.(map[string]any); ok {
			withoutTemplate(inner)
		}
	}
}
