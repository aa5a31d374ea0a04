package render

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"text/template"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/chartwright/chartwright/internal/chart/boundedyaml"
)

// Renderer renders charts. It is safe for concurrent use.
type Renderer struct {
	limits    Limits
	largeLock chan struct{}
	kits      sync.Pool
}

// New returns a Renderer with limits for each of its renders.
func New(limits Limits) *Renderer {
	r := &Renderer{limits: limits, largeLock: make(chan struct{}, 1)}
	r.kits.New = func() any {
		b := &budget{}
		return &kit{budget: b, functions: guarded(b)}
	}
	return r
}

// kit holds the template functions and the budget that they use. Kits are reused, because
// creating one takes longer than a small render.
type kit struct {
	budget    *budget
	functions template.FuncMap
}

// Files executes templates and returns their outputs by name, except those of partials,
// whose names begin with _. It calls dot before each file to get the file's dot. The
// error is a LimitError if a limit was exceeded, or the cause of the context's end.
func (r *Renderer) Files(ctx context.Context, set *Set, dot func(name string) any, options Options) (map[string]string, error) {
	k, ok := r.kits.Get().(*kit)
	if !ok {
		return nil, errors.New("internal error: the pool contains another type")
	}
	defer r.kits.Put(k)
	*k.budget = *newBudget(ctx, r.limits, r.largeLock)
	k.budget.lend = options.Lend
	defer k.budget.end()
	e := execution{budget: k.budget, functions: k.functions, including: map[string]int{}, options: options, traced: set.traced}
	if options.Reused != nil {
		e.functions = options.Reused.functions(e.functions)
	}
	if options.Trace != nil {
		e.functions = options.Trace.functions(e.functions)
	}
	rendered, err := e.render(set, dot)
	if k.budget.err != nil {
		return nil, k.budget.err
	}
	return rendered, err
}

// Options are the options of one render.
type Options struct {
	// Lookup implements the template function lookup. If it is nil, lookup finds
	// nothing.
	Lookup Lookup
	// InValues enables lookup in arguments of tpl, too. It is off by default, because
	// the author of a custom resource could read objects without permission.
	InValues bool
	// OfChart reports whether an argument of tpl is a file of the chart. Such files can
	// use lookup, like templates. If OfChart is nil, no argument is a file.
	OfChart func(text string) bool
	// Lend releases the action's slot when the render must wait until it is the only
	// large one. Its result acquires a slot again and is called when the render ends.
	// Lend is nil if there is no slot.
	Lend func() (resume func())
	// Trace records which values each file reads. It is for sets that are parsed as
	// traced.
	Trace *Trace
	// Reused holds results of slow or random functions. If it is nil, each call has its own result.
	Reused *Reused
	// Only limits the render to some files. If it is nil, all files are rendered.
	Only sets.Set[string]
}

// execution is one render.
type execution struct {
	budget    *budget
	functions template.FuncMap
	options   Options
	// traced is true if texts are parsed as traced.
	traced bool
	// including counts the active inclusions of each template.
	including map[string]int
}

func (e *execution) render(set *Set, dot func(name string) any) (rendered map[string]string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("rendering template failed: %v", r)
		}
	}()
	root, err := set.root.Clone()
	if err != nil {
		return nil, fmt.Errorf("cannot clone templates: %w", err)
	}
	// Bind only the functions that the chart uses, because binding is slow.
	bound := e.own(e.options.Lookup)
	for name := range set.used {
		if f := e.functions[name]; f != nil {
			bound[name] = f
		}
	}
	root.Option(missingKey).Funcs(bound)
	e.bind(root)
	rendered = make(map[string]string, len(set.names))
	output, size := 0, 0
	for _, name := range set.names {
		if strings.HasPrefix(path.Base(name), "_") || e.options.Only != nil && !e.options.Only.Has(name) {
			continue
		}
		e.budget.file = name
		if e.options.Trace != nil {
			e.options.Trace.begin(name)
		}
		to := &writer{budget: e.budget}
		if err := root.ExecuteTemplate(to, name, dot(name)); err != nil {
			return nil, executionError(name, err)
		}
		// A file such as the notes need not be YAML. The error appears when the file
		// is decoded.
		aliased, _ := boundedyaml.Aliased(to.String())
		if output += to.Len() + aliased.Bytes; output > e.budget.limits.Output {
			e.budget.exceededf("the chart's output exceeds %s", mebibytes(e.budget.limits.Output))
		}
		if size += boundedyaml.Tokens(to.String()) + aliased.Values; size > e.budget.limits.Tokens {
			e.budget.exceededf("the chart's output exceeds %d lines, keys and list items", e.budget.limits.Tokens)
		}
		rendered[name] = withoutMissing(to.String())
	}
	return rendered, nil
}

// own returns the functions that depend on the options of the render.
func (e *execution) own(lookup Lookup) template.FuncMap {
	if lookup == nil {
		lookup = noLookup
	}
	b := e.budget
	return template.FuncMap{
		"lookup": func(apiVersion, kind, namespace, name string) (map[string]any, error) {
			b.take(clockSteps)
			found, err := lookup(apiVersion, kind, namespace, name)
			// The size of a list depends on the cluster.
			w := weigher{most: b.limits.Memory}
			w.value(found, b.limits.Depth)
			b.keep(w.bytes)
			return found, err
		},
	}
}

// bind binds the functions that execute templates to a set of templates.
func (e *execution) bind(t *template.Template) {
	t.Funcs(template.FuncMap{
		"include": func(name string, data any) (string, error) { return e.include(t, name, data) },
		"tpl":     func(text string, data any) (string, error) { return e.tpl(t, text, data) },
	})
}

// depthOfTpl is the depth of a tpl. It is more than 1 because each tpl clones all templates
// of the chart.
const depthOfTpl = 10

// maxIncluded is the maximum number of recursive inclusions of a template, as in Helm.
const maxIncluded = 1000

func (e *execution) include(t *template.Template, name string, data any) (string, error) {
	if e.including[name] > maxIncluded {
		return "", fmt.Errorf("rendering template has a nested reference name: %s: unable to execute template", name)
	}
	e.budget.enter(1)
	e.including[name]++
	to := &writer{budget: e.budget}
	err := t.ExecuteTemplate(to, name, data)
	e.including[name]--
	e.budget.leave(1)
	return to.String(), err
}

func (e *execution) tpl(parent *template.Template, text string, data any) (string, error) {
	e.budget.enter(depthOfTpl)
	defer e.budget.leave(depthOfTpl)
	if !strings.Contains(text, "{{") {
		// The text contains no action. Many charts call tpl on every value.
		return withoutMissing(text), nil
	}
	e.budget.template(text)
	// Clone copies all templates of the chart.
	e.budget.take(clockSteps)
	t, err := parent.Clone()
	if err != nil {
		return "", fmt.Errorf("cannot clone template: %w", err)
	}
	t.Option(missingKey).Funcs(e.functions)
	e.bind(t)
	if !e.options.InValues && (e.options.OfChart == nil || !e.options.OfChart(text)) {
		// This also disables lookup in the chart's templates that the text includes,
		// because the text chooses their arguments, and in nested texts.
		t.Funcs(e.own(noLookup))
	}
	t = t.New(parent.Name())
	if err := parseInto(t, text, nil, e.traced); err != nil {
		return "", fmt.Errorf("cannot parse template %s: %w", quoted(text), err)
	}
	to := &writer{budget: e.budget}
	if err := t.Execute(to, data); err != nil {
		return "", fmt.Errorf("error during tpl function execution for %s: %w", quoted(text), err)
	}
	return withoutMissing(to.String()), nil
}

// quoted quotes a text for an error, as a whole or not at all. Secret values are redacted
// from errors only where they appear as a whole.
func quoted(text string) string {
	if len(text) > 4096 {
		return fmt.Sprintf("a text of %d bytes", len(text))
	}
	return fmt.Sprintf("%q", text)
}

// withoutMissing removes the text that text/template writes for missing values.
func withoutMissing(text string) string { return strings.ReplaceAll(text, "<no value>", "") }

// executionError formats an error as Helm does. An error of fail or required contains only
// its position and its message.
func executionError(file string, err error) error {
	if _, ok := errors.AsType[template.ExecError](err); !ok {
		return err
	}
	tokens := strings.SplitN(err.Error(), ": ", 3)
	if len(tokens) != 3 {
		return fmt.Errorf("execution error in (%s): %w", file, err)
	}
	if failed, ok := errors.AsType[*failError](err); ok {
		return fmt.Errorf("execution error at (%s): %s", tokens[1], failed.message)
	}
	return err
}
