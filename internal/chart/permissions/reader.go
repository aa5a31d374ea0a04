package permissions

import (
	"text/template/parse"

	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/analysis"
)

// Bounds that keep the scan of a chart short, whatever its templates do.
const (
	// maxTexts is how many texts an expression, or the beginning of a line, may
	// be followed in; with more it counts as unknown.
	maxTexts = 32
	// maxIncludes is how deep includes are followed.
	maxIncludes = 10
)

// reader reads templates through all branches at once.
type reader struct {
	defines map[string]define
	// values are the chart's defaults, and enums what its schema lets a value
	// be.
	values map[string]any
	enums  leaves
	// variables holds, by file and name, what is ever assigned to a variable.
	variables map[string]texts
}

// define is a named template.
type define struct {
	file analysis.File
	tree *parse.Tree
}

func newReader(chart *chart.Chart) (*reader, error) {
	r := &reader{defines: map[string]define{}, variables: map[string]texts{}}
	var err error
	if r.values, err = chart.Values(); err != nil {
		return nil, err
	}
	if err := r.enums.ofSchema(chart.Schema(), true); err != nil {
		return nil, err
	}
	for _, file := range chart.Templates() {
		for _, tree := range file.Trees {
			if _, known := r.defines[tree.Name]; !known && tree.Name != file.Path {
				r.defines[tree.Name] = define{file, tree}
			}
		}
	}
	// A variable may be assigned another: twice is enough for two steps.
	for range 2 {
		for _, file := range chart.Templates() {
			r.assignments(file)
		}
	}
	return r, nil
}

// assignments notes what is assigned to the variables of a file.
func (r *reader) assignments(file analysis.File) {
	ranges := map[*parse.PipeNode]bool{}
	file.Walk(func(node parse.Node) bool {
		switch n := node.(type) {
		case *parse.PipeNode:
			if len(n.Decl) == 1 && !ranges[n] {
				r.assign(file, n.Decl[0], r.evaluate(n, place{file: file}).texts)
			}
		case *parse.RangeNode:
			ranges[n.Pipe] = true
			if decl := n.Pipe.Decl; len(decl) > 0 {
				r.assign(file, decl[len(decl)-1], r.evaluate(n.Pipe, place{file: file}).items)
			}
		}
		return true
	})
}

func (r *reader) assign(file analysis.File, variable *parse.VariableNode, to texts) {
	key := file.Path + variable.Ident[0]
	r.variables[key] = r.variables[key].or(to)
}

// place is where the reader is.
type place struct {
	file analysis.File
	in   branch
	// dot are the texts that the dot can be, in a range over some.
	dot texts
	// indent is how far in what is included stands.
	indent int
	// depth counts the includes that lead here.
	depth int
}
