package lint

import (
	"path"
	"slices"
	"strings"
	"text/template/parse"

	"github.com/chartwright/chartwright/internal/chart/analysis"
)

// call is one place at which a template calls a function or reads a field that
// a rule is about.
type call struct {
	file analysis.File
	// in is the name of the template that it stands in: a define's, or the
	// file's own.
	in string
	// name is that of a function, or a field without its dot: Release.Revision.
	name string
	args []parse.Node
	pos  parse.Pos
	// guard is what decides, around it, whether it is made.
	guard guard
	// into is the variable that its whole action declares or sets.
	into string
}

func (c call) place() place { return place{c.file.Path, c.file.Line(c.pos)} }

// guard is what keeps a value that was made once.
type guard struct {
	// lookup: whether the call is made, or its result used, depends on what is
	// in the cluster.
	lookup bool
	// included: that is known of the call's own pipeline alone, and because it
	// includes a template that reads the cluster. It says nothing of what else
	// that template does.
	included bool
	// unless are values, as paths below .Values, each of which, if it is set,
	// takes the place of the call's result.
	unless []string
}

// or returns the guard with one more value that may take the result's place.
func (g guard) or(value string) guard {
	g.unless = append(slices.Clip(g.unless), value)
	return g
}

// called holds the calls of a chart.
type called struct {
	calls []call
	// reads are the templates that read the cluster, themselves or by others.
	reads map[string]bool
	// kept are variables, by template, that a lookup may set.
	kept map[string]map[string]bool
	// roots are the templates that Helm executes by itself.
	roots map[string]bool
	// computed: some template is included by a name that is computed.
	computed bool
}

// readCalls finds the calls in the templates of a chart.
func readCalls(files []analysis.File) *called {
	all := &called{reads: readers(files), kept: map[string]map[string]bool{}, roots: map[string]bool{}}
	for _, file := range files {
		for _, tree := range file.Trees {
			if tree.Name == file.Path && !strings.HasPrefix(path.Base(file.Path), "_") {
				all.roots[tree.Name] = true
			}
			all.kept[tree.Name] = map[string]bool{}
			r := &reader{all: all, file: file, in: tree.Name, held: all.kept[tree.Name], paths: map[string]string{}}
			r.list(tree.Root, guard{})
		}
	}
	return all
}

// live tells whether a template is ever executed.
func (a *called) live(name string) bool { return a.isLive(name, map[string]bool{}) }

func (a *called) isLive(name string, seen map[string]bool) bool {
	if a.roots[name] {
		return true
	}
	if seen[name] {
		return false
	}
	seen[name] = true
	named := false
	for _, c := range a.calls {
		if includes(c) != name {
			continue
		}
		named = true
		if a.isLive(c.in, seen) {
			return true
		}
	}
	return !named && a.computed
}

// guarded tells whether a value that a call makes is kept from one revision to
// the next: by the guard around it or, in a define, around all that include it.
func (a *called) guarded(c call, isSet func(file, path string) bool) bool {
	return a.isGuarded(c, isSet, map[string]bool{})
}

func (a *called) isGuarded(c call, isSet func(file, path string) bool, seen map[string]bool) bool {
	if c.guard.lookup || c.into != "" && a.kept[c.in][c.into] {
		return true
	}
	for _, path := range c.guard.unless {
		if isSet(c.file.Path, path) {
			return true
		}
	}
	if a.roots[c.in] || seen[c.in] {
		return false
	}
	seen[c.in] = true
	found := false
	for _, by := range a.calls {
		if includes(by) != c.in || !a.live(by.in) {
			continue
		}
		found = true
		if !a.isGuarded(by, isSet, seen) {
			return false
		}
	}
	return found
}

// includes returns the name of the template that a call includes, empty if it
// includes none or by a name that is computed.
func includes(c call) string {
	if c.name != "include" && c.name != "template" || len(c.args) == 0 {
		return ""
	}
	literal, ok := c.args[0].(*parse.StringNode)
	if !ok {
		return ""
	}
	return literal.Text
}

// readers returns the names of the templates in which lookup is called, and of
// those that include them.
func readers(files []analysis.File) map[string]bool {
	reads := map[string]bool{}
	included := map[string][]string{}
	for _, file := range files {
		for _, tree := range file.Trees {
			analysis.Walk(tree.Root, func(node parse.Node) bool {
				switch n := node.(type) {
				case *parse.IdentifierNode:
					reads[tree.Name] = reads[tree.Name] || n.Ident == "lookup"
				case *parse.StringNode:
					// The name in an include; any other text does no harm.
					included[n.Text] = append(included[n.Text], tree.Name)
				case *parse.TemplateNode:
					included[n.Name] = append(included[n.Name], tree.Name)
				}
				return true
			})
		}
	}
	var spread func(string)
	spread = func(name string) {
		for _, by := range included[name] {
			if !reads[by] {
				reads[by] = true
				spread(by)
			}
		}
	}
	for _, file := range files {
		for _, tree := range file.Trees {
			if reads[tree.Name] {
				spread(tree.Name)
			}
		}
	}
	return reads
}
