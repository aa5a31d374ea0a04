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
	// Path is the path of the file, relative to the chart's folder. Paths of subcharts'
	// files begin with charts/.
	Path string
	Text string
	// Trees are the file's own tree, named by the path, and the trees of the templates
	// that the file defines, sorted by name.
	Trees []*parse.Tree
}

// Parse parses a template file. The name is its path. The error contains path and line.
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

// Line returns the line, from 1, of a node's position in the file.
func (f File) Line(pos parse.Pos) int {
	return 1 + strings.Count(f.Text[:min(int(pos), len(f.Text))], "\n")
}

// Rendered reports whether Helm renders a tree of the file. Helm executes other trees only
// where templates include them.
func (f File) Rendered(tree *parse.Tree) bool {
	return tree.Name == f.Path && !strings.HasPrefix(path.Base(f.Path), "_")
}

// Subcharts returns the names of the subcharts that contain the file, outermost first. They
// are the path of the subchart's values.
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

// Walk visits a node and, if visit returns true for it, the nodes below it.
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
		if branch := BranchOf(node); branch != nil {
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

// isNil reports whether a node is missing, such as the pipeline of a template call or the
// else of an if.
func isNil(node parse.Node) bool {
	switch n := node.(type) {
	case *parse.ListNode:
		return n == nil
	case *parse.PipeNode:
		return n == nil
	}
	return node == nil
}

// BranchOf returns the common part of if, with and range, and nil for other nodes.
func BranchOf(node parse.Node) *parse.BranchNode {
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

// rootFields are the fields of Helm's root object.
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
