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

// Set is the templates of a chart, parsed and instrumented. Nothing changes it,
// so that any number of renders can be made of it at once.
type Set struct {
	root *template.Template
	// names are those of the files, in the order in which they are executed.
	names []string
	// used are the functions that stand in them.
	used map[string]bool
}

// missingKey lets templates read what is not there.
const missingKey = "missingkey=zero"

// Parse reads the templates of a chart.
func Parse(files []File) (*Set, error) {
	// As Helm's engine: outer files come last, so that what they define counts.
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b File) int {
		if byDepth := strings.Count(b.Name, "/") - strings.Count(a.Name, "/"); byDepth != 0 {
			return byDepth
		}
		return strings.Compare(b.Name, a.Name)
	})
	set := &Set{root: template.New("gotpl"), used: map[string]bool{}}
	for _, file := range files {
		if err := parseInto(set.root.New(file.Name), file.Text, set.used); err != nil {
			return nil, parseError(file.Name, err)
		}
		set.names = append(set.names, file.Name)
	}
	return set, nil
}

// parseInto reads a text as Template.Parse does, instruments it, and notes the
// functions that it uses, if that is asked for.
func parseInto(t *template.Template, text string, used map[string]bool) error {
	trees, err := parse.Parse(t.Name(), text, "", "", functions, builtins)
	if err != nil {
		return err
	}
	for name, tree := range trees {
		instrument(tree)
		if used != nil && tree.Root != nil {
			noteUsed(tree.Root, used)
		}
		if _, err := t.AddParseTree(name, tree); err != nil {
			return err
		}
	}
	return nil
}

// builtins are the functions that templates may call beside those of every
// chart, each with something that it returns.
var builtins = template.FuncMap{
	"and": 0, "call": 0, "index": 0, "slice": 0, "len": 0, "not": 0, "or": 0,
	"eq": 0, "ge": 0, "gt": 0, "le": 0, "lt": 0, "ne": 0,
	"print": "", "printf": "", "println": "", "html": "", "js": "", "urlquery": "",
	"include": "", "tpl": "", "lookup": 0,
}

// parseError words an error as Helm does.
func parseError(file string, err error) error {
	tokens := strings.Split(err.Error(), ": ")
	if len(tokens) == 1 {
		return fmt.Errorf("parse error in (%s): %w", file, err)
	}
	return fmt.Errorf("parse error at (%s): %s", tokens[1], tokens[len(tokens)-1])
}

// noteUsed notes the functions below a node.
func noteUsed(node parse.Node, used map[string]bool) {
	analysis.Walk(node, func(node parse.Node) bool {
		if function, ok := node.(*parse.IdentifierNode); ok {
			used[function.Ident] = true
		}
		return true
	})
}
