package render

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"text/template"

	"github.com/chartwright/chartwright/internal/chart/boundedyaml"
)

// Renderer renders charts, any number at once.
type Renderer struct {
	limits Limits
	alone  chan struct{}
	kits   sync.Pool
}

// New returns a Renderer whose renders all keep to the limits.
func New(limits Limits) *Renderer {
	r := &Renderer{limits: limits, alone: make(chan struct{}, 1)}
	r.kits.New = func() any {
		b := &budget{}
		return &kit{budget: b, functions: guarded(b)}
	}
	return r
}

// kit is what a render works with: functions, and the budget that they are
// bound to. It takes longer to make than many a render, so it is used again.
type kit struct {
	budget    *budget
	functions template.FuncMap
}

// Files executes templates and returns what they write, by their names. Partial
// ones, whose names begin with _, write nothing. Dot is called before each file
// and returns what its dot is. The error is a LimitError where a limit was
// exceeded, and the cause of the context's end where that came first.
func (r *Renderer) Files(ctx context.Context, set *Set, dot func(name string) any, options Options) (map[string]string, error) {
	k, ok := r.kits.Get().(*kit)
	if !ok {
		return nil, errors.New("internal error: the pool has something else")
	}
	defer r.kits.Put(k)
	*k.budget = *newBudget(ctx, r.limits, r.alone)
	k.budget.lend = options.Lend
	defer k.budget.end()
	e := execution{budget: k.budget, functions: k.functions, including: map[string]int{}, options: options}
	rendered, err := e.render(set, dot)
	if k.budget.err != nil {
		return nil, k.budget.err
	}
	return rendered, err
}

// Options are those of one render. The zero value finds nothing in the cluster.
type Options struct {
	// Lookup answers the template function of that name; nil finds nothing.
	Lookup Lookup
	// InValues lets Lookup answer texts that are given to tpl, too. Texts that
	// come from a custom resource would otherwise read what its author may not.
	InValues bool
	// OfChart reports whether a text that is given to tpl is a file of the
	// chart, which may look up as its templates may; nil means that none is.
	OfChart func(text string) bool
	// Lend gives back the action's slot when the render has to wait until it is
	// the only large one. Its result takes a slot again, when the render ends. A
	// nil Lend has no slot to give.
	Lend func() (resume func())
}

// execution is one render.
type execution struct {
	budget    *budget
	functions template.FuncMap
	options   Options
	// including counts how often each template is being included.
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
	// Most charts use few of them, and to bind one takes a while.
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
		if strings.HasPrefix(path.Base(name), "_") {
			continue
		}
		e.budget.file = name
		to := &writer{budget: e.budget}
		if err := root.ExecuteTemplate(to, name, dot(name)); err != nil {
			return nil, executionError(name, err)
		}
		// A file may be no YAML, such as the notes: whoever reads it checks it.
		aliased, _ := boundedyaml.Aliased(to.String())
		if output += to.Len() + aliased.Bytes; output > e.budget.limits.Output {
			e.budget.exceededf("the chart writes more than %s", mebibytes(e.budget.limits.Output))
		}
		if size += boundedyaml.Tokens(to.String()) + aliased.Values; size > e.budget.limits.Tokens {
			e.budget.exceededf("the chart writes more than %d lines, keys and items of lists", e.budget.limits.Tokens)
		}
		rendered[name] = withoutMissing(to.String())
	}
	return rendered, nil
}

// own are the functions that belong to one render.
func (e *execution) own(lookup Lookup) template.FuncMap {
	if lookup == nil {
		lookup = noLookup
	}
	b := e.budget
	return template.FuncMap{
		"lookup": func(apiVersion, kind, namespace, name string) (map[string]any, error) {
			b.take(clockSteps)
			found, err := lookup(apiVersion, kind, namespace, name)
			// How large a list is, is for the cluster to say.
			w := weigher{most: b.limits.Memory}
			w.value(found, b.limits.Depth)
			b.keep(w.bytes)
			return found, err
		},
	}
}

// bind binds the functions that execute templates to a set of them.
func (e *execution) bind(t *template.Template) {
	t.Funcs(template.FuncMap{
		"include": func(name string, data any) (string, error) { return e.include(t, name, data) },
		"tpl":     func(text string, data any) (string, error) { return e.tpl(t, text, data) },
	})
}

// depthOfTpl is how deep a tpl counts: all templates of the chart are cloned for
// it.
const depthOfTpl = 10

// maxIncluded is how often a template may be included by itself, as in Helm.
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
		// It says of itself what it writes. Many charts call tpl on every value.
		return withoutMissing(text), nil
	}
	e.budget.template(text)
	// A clone has to be made of all templates of the chart.
	e.budget.take(clockSteps)
	t, err := parent.Clone()
	if err != nil {
		return "", fmt.Errorf("cannot clone template: %w", err)
	}
	t.Option(missingKey).Funcs(e.functions)
	e.bind(t)
	if !e.options.InValues && (e.options.OfChart == nil || !e.options.OfChart(text)) {
		// Also for the chart's templates that the text includes: it chooses what
		// they look up. A text within this one inherits it.
		t.Funcs(e.own(noLookup))
	}
	t = t.New(parent.Name())
	if err := parseInto(t, text, nil); err != nil {
		return "", fmt.Errorf("cannot parse template %s: %w", quoted(text), err)
	}
	to := &writer{budget: e.budget}
	if err := t.Execute(to, data); err != nil {
		return "", fmt.Errorf("error during tpl function execution for %s: %w", quoted(text), err)
	}
	return withoutMissing(to.String()), nil
}

// quoted quotes a text in an error, whole or not at all: what is taken out of
// errors because it is secret would not be known by a part of it.
func quoted(text string) string {
	if len(text) > 4096 {
		return fmt.Sprintf("a text of %d bytes", len(text))
	}
	return fmt.Sprintf("%q", text)
}

// withoutMissing drops what text/template writes for what is not there.
func withoutMissing(text string) string { return strings.ReplaceAll(text, "<no value>", "") }

// executionError words an error as Helm does: of what the chart's author says
// by fail and required nothing is told but where.
func executionError(file string, err error) error {
	if _, ok := errors.AsType[template.ExecError](err); !ok {
		return err
	}
	tokens := strings.SplitN(err.Error(), ": ", 3)
	if len(tokens) != 3 {
		return fmt.Errorf("execution error in (%s): %w", file, err)
	}
	if said, ok := errors.AsType[*saidError](err); ok {
		return fmt.Errorf("execution error at (%s): %s", tokens[1], said.message)
	}
	return err
}
