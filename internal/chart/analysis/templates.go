package analysis

import (
	"maps"
	"slices"
	"strings"
	"text/template/parse"
)

// File is one template file of a chart.
type File struct {
	// Path is that of the file, relative to the chart's folder; files of
	// subcharts begin with charts/.
	Path string
	Text string
	// Trees are the file's own tree and those that it defines, in the order of
	// their names.
	Trees []*parse.Tree
}

// Parse reads a template file. The error has the path and the line.
func Parse(path, text string) (File, error) {
	tree := parse.New(path)
	tree.Mode = parse.SkipFuncCheck
	set := map[string]*parse.Tree{}
	if _, err := tree.Parse(text, "", "", set); err != nil {
		return File{}, err
	}
	file := File{Path: path, Text: text}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if set[name].Root != nil {
			file.Trees = append(file.Trees, set[name])
		}
	}
	return file, nil
}

// Line returns the line, from 1, of a position in the file, which each node has.
func (f File) Line(pos parse.Pos) int {
	return 1 + strings.Count(f.Text[:min(int(pos), len(f.Text))], "\n")
}

// Walk visits every node of the file, in the order of the text, those below a
// node only if visit returns true for it.
func (f File) Walk(visit func(parse.Node) bool) {
	for _, tree := range f.Trees {
		Walk(tree.Root, visit)
	}
}

// Walk visits a node and, where visit returns true for it, those below it.
func Walk(node parse.Node, visit func(parse.Node) bool) {
	if isNil(node) || !visit(node) {
		return
	}
	switch n := node.(type) {
	case *parse.ListNode:
		each(n.Nodes, visit)
	case *parse.ActionNode:
		Walk(n.Pipe, visit)
	case *parse.PipeNode:
		each(n.Decl, visit)
		each(n.Cmds, visit)
	case *parse.CommandNode:
		each(n.Args, visit)
	case *parse.IfNode:
		branch(&n.BranchNode, visit)
	case *parse.RangeNode:
		branch(&n.BranchNode, visit)
	case *parse.WithNode:
		branch(&n.BranchNode, visit)
	case *parse.TemplateNode:
		Walk(n.Pipe, visit)
	case *parse.ChainNode:
		Walk(n.Node, visit)
	}
}

func branch(n *parse.BranchNode, visit func(parse.Node) bool) {
	Walk(n.Pipe, visit)
	Walk(n.List, visit)
	Walk(n.ElseList, visit)
}

func each[N parse.Node](nodes []N, visit func(parse.Node) bool) {
	for _, node := range nodes {
		Walk(node, visit)
	}
}

// isNil tells of the pointers that the parser leaves empty: a template call
// without a pipeline, an if without an else.
func isNil(node parse.Node) bool {
	switch n := node.(type) {
	case *parse.ListNode:
		return n == nil
	case *parse.PipeNode:
		return n == nil
	}
	return node == nil
}
