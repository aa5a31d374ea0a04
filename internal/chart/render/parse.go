package render

import (
	"fmt"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"

	"github.com/chartwright/chartwright/internal/chart/analysis"
)

// File is one template file.
type File struct {
	// Name is its path, from the name of the outermost chart.
	Name, Text string
}

// Set holds the parsed and instrumented templates of a chart. It is immutable, so that
// concurrent renders can use it.
type Set struct {
	root *template.Template
	// names are the names of the files, in the order of their execution.
	names []string
	// used are the functions that the templates call.
	used map[string]bool
	// traced is true if the templates contain the calls that a Trace needs.
	traced bool
}

// missingKey is the template option for missing values: they have the zero value, and are
// not errors.
const missingKey = "missingkey=zero"

// Parse parses and instruments the templates of a chart. If traced is true, renders of the
// result need a Trace.
func Parse(files []File, traced bool) (*Set, error) {
	// As in Helm's engine, outer files come last, so that their definitions have
	// precedence.
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b File) int {
		if byDepth := strings.Count(b.Name, "/") - strings.Count(a.Name, "/"); byDepth != 0 {
			return byDepth
		}
		return strings.Compare(b.Name, a.Name)
	})
	set := &Set{root: template.New("gotpl"), used: map[string]bool{}, traced: traced}
	for _, file := range files {
		if err := parseInto(set.root.New(file.Name), file.Text, set.used, traced); err != nil {
			return nil, parseError(file.Name, err)
		}
		set.names = append(set.names, file.Name)
	}
	return set, nil
}

// parseInto parses a text as Template.Parse does, instruments it, and adds the functions
// that it calls to used, unless used is nil.
func parseInto(t *template.Template, text string, used map[string]bool, traced bool) error {
	trees, err := parse.Parse(t.Name(), text, "", "", functions, builtins)
	if err != nil {
		return err
	}
	for name, tree := range trees {
		instrument(tree)
		if traced {
			observe(tree)
		}
		if used != nil && tree.Root != nil {
			noteUsed(tree.Root, used)
		}
		if _, err := t.AddParseTree(name, tree); err != nil {
			return err
		}
	}
	return nil
}

// builtins holds the functions of text/template and those that depend on the render. The
// values have the types of their results.
var builtins = template.FuncMap{
	"and": 0, "call": 0, "index": 0, "slice": 0, "len": 0, "not": 0, "or": 0,
	"eq": 0, "ge": 0, "gt": 0, "le": 0, "lt": 0, "ne": 0,
	"print": "", "printf": "", "println": "", "html": "", "js": "", "urlquery": "",
	"include": "", "tpl": "", "lookup": 0,
}

// parseError formats an error as Helm does.
func parseError(file string, err error) error {
	tokens := strings.Split(err.Error(), ": ")
	if len(tokens) == 1 {
		return fmt.Errorf("parse error in (%s): %w", file, err)
	}
	return fmt.Errorf("parse error at (%s): %s", tokens[1], tokens[len(tokens)-1])
}

// noteUsed adds the functions that are called below a node to used.
func noteUsed(node parse.Node, used map[string]bool) {
	analysis.Walk(node, func(node parse.Node) bool {
		if function, ok := node.(*parse.IdentifierNode); ok {
			used[function.Ident] = true
		}
		return true
	})
}
