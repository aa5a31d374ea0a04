package analysis

import (
	"maps"
	"path"
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
	// Trees are the file's own tree, which has the file's path as its name, and
	// those of the templates that it defines, sorted by name.
	Trees []*parse.Tree
}

// Parse reads a template file. Its name is the path, which the error has with the
// line.
func Parse(name, text string) (File, error) {
	tree := parse.New(name)
	tree.Mode = parse.SkipFuncCheck
	set := map[string]*parse.Tree{}
	if _, err := tree.Parse(text, "", "", set); err != nil {
		return File{}, err
	}
	file := File{Path: name, Text: text}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if set[name].Root != nil {
			file.Trees = append(file.Trees, set[name])
		}
	}
	return file, nil
}

// Line returns the line, from 1, of a position in the file. Nodes have one.
func (f File) Line(pos parse.Pos) int {
	return 1 + strings.Count(f.Text[:min(int(pos), len(f.Text))], "\n")
}

// Rendered reports whether a tree of the file is its own, and Helm renders that.
// The others are executed where they are included.
func (f File) Rendered(tree *parse.Tree) bool {
	return tree.Name == f.Path && !strings.HasPrefix(path.Base(f.Path), "_")
}

// Subcharts returns the names of the subcharts that the file is in, outermost
// first. Its values are below these keys.
func (f File) Subcharts() []string {
	var names []string
	parts := strings.Split(path.Dir(f.Path), "/")
	for i := 0; i+1 < len(parts) && parts[i] == "charts"; i += 2 {
		names = append(names, parts[i+1])
	}
	return names
}

// Walk visits every node of the file, in the order of the text, and the nodes
// below a node only if visit returns true for it.
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
		walkEach(n.Nodes, visit)
	case *parse.ActionNode:
		Walk(n.Pipe, visit)
	case *parse.PipeNode:
		walkEach(n.Decl, visit)
		walkEach(n.Cmds, visit)
	case *parse.CommandNode:
		walkEach(n.Args, visit)
	case *parse.TemplateNode:
		Walk(n.Pipe, visit)
	case *parse.ChainNode:
		Walk(n.Node, visit)
	default:
		if branch := branchOf(node); branch != nil {
			Walk(branch.Pipe, visit)
			Walk(branch.List, visit)
			Walk(branch.ElseList, visit)
		}
	}
}

func walkEach[N parse.Node](nodes []N, visit func(parse.Node) bool) {
	for _, node := range nodes {
		Walk(node, visit)
	}
}

// isNil reports whether the parser left a node empty: the pipeline of a template
// call, or the else of an if.
func isNil(node parse.Node) bool {
	switch n := node.(type) {
	case *parse.ListNode:
		return n == nil
	case *parse.PipeNode:
		return n == nil
	}
	return node == nil
}

// branchOf returns what if, with and range have in common, nil for other nodes.
func branchOf(node parse.Node) *parse.BranchNode {
	switch n := node.(type) {
	case *parse.IfNode:
		return &n.BranchNode
	case *parse.RangeNode:
		return &n.BranchNode
	case *parse.WithNode:
		return &n.BranchNode
	}
	return nil
}

// Function returns the name of a function, empty for any other node.
func Function(node parse.Node) string {
	if n, ok := node.(*parse.IdentifierNode); ok {
		return n.Ident
	}
	return ""
}

// Literal returns the text of a literal string.
func Literal(node parse.Node) (text string, ok bool) {
	n, ok := node.(*parse.StringNode)
	if !ok {
		return "", false
	}
	return n.Text, true
}

// rootFields are the fields of the root object, which Helm gives to templates.
var rootFields = []string{"Values", "Release", "Files", "Capabilities", "Chart", "Template"}

// Field returns the path of a field of the root object, empty for any other node.
// .Release.Name, $.Release.Name and $top.Release.Name are the same field.
func Field(node parse.Node) string {
	names := Fields(node)
	at := slices.IndexFunc(names, func(name string) bool { return slices.Contains(rootFields, name) })
	if at < 0 {
		return ""
	}
	return strings.Join(names[at:], ".")
}

// Fields returns the names of the fields, keys or methods that an operand reads.
func Fields(node parse.Node) []string {
	switch n := node.(type) {
	case *parse.FieldNode:
		return n.Ident
	case *parse.VariableNode:
		return n.Ident[1:]
	case *parse.ChainNode:
		return n.Field
	}
	return nil
}
