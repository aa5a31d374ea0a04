package lint

import (
	"slices"
	"strings"
	"text/template/parse"

	"github.com/chartwright/chartwright/internal/chart/analysis"
)

// reader reads one template from its beginning to its end, and knows of each
// place what decides whether it is executed.
type reader struct {
	all  *called
	file analysis.File
	in   string
	// held are the variables that hold, or may be set to, what a lookup found.
	held map[string]bool
	// paths are variables that hold a value as it is, with its path.
	paths map[string]string
}

func (r *reader) list(list *parse.ListNode, around guard) {
	if list == nil {
		return
	}
	for _, node := range list.Nodes {
		switch n := node.(type) {
		case *parse.ActionNode:
			r.pipe(n.Pipe, around)
		case *parse.TemplateNode:
			r.note("template", []parse.Node{&parse.StringNode{Text: n.Name}}, n.Pos, around, "")
			r.pipe(n.Pipe, around)
		case *parse.IfNode:
			r.branch(&n.BranchNode, around)
		case *parse.WithNode:
			r.branch(&n.BranchNode, around)
		case *parse.RangeNode:
			r.branch(&n.BranchNode, around)
		}
	}
}

// branch reads both ways that a condition may go.
func (r *reader) branch(n *parse.BranchNode, around guard) {
	r.pipe(n.Pipe, around)
	if r.looks(n.Pipe) {
		around.lookup, around.included = true, false
	}
	then, otherwise := around, around
	if path, negated := r.condition(n.Pipe); path != "" {
		if negated {
			then = around.or(path)
		} else {
			otherwise = around.or(path)
		}
	}
	r.list(n.List, then)
	r.list(n.ElseList, otherwise)
}

// condition returns the value that a condition is about, and whether it holds
// where the value is not set: {{ if .Values.a }}, {{ if not .Values.a }}.
func (r *reader) condition(pipe *parse.PipeNode) (path string, negated bool) {
	if len(pipe.Cmds) != 1 {
		return "", false
	}
	args := pipe.Cmds[0].Args
	if len(args) == 2 && (ident(args[0]) == "not" || ident(args[0]) == "empty") {
		return r.path(args[1]), true
	}
	if len(args) == 1 {
		return r.path(args[0]), false
	}
	return "", false
}

// pipe reads a pipeline: {{ $a := first | second }}.
func (r *reader) pipe(pipe *parse.PipeNode, around guard) {
	if pipe == nil {
		return
	}
	switch {
	case r.looksItself(pipe):
		around.lookup, around.included = true, false
	case !around.lookup && r.looks(pipe):
		around.lookup, around.included = true, true
	}
	into := ""
	for _, variable := range pipe.Decl {
		name := variable.Ident[0]
		// What is set where a lookup decides is set by the lookup.
		if around.lookup {
			r.held[name] = true
		}
		if path := r.valueOf(pipe); path != "" {
			r.paths[name] = path
		}
		into = name
	}
	for i, command := range pipe.Cmds {
		inner := around
		if i > 0 && ident(command.Args[0]) == "default" {
			// What comes through the pipe wins over the argument.
			if path := r.valueOf(&parse.PipeNode{Cmds: pipe.Cmds[:i]}); path != "" {
				inner = inner.or(path)
			}
		}
		r.command(command, inner, into)
	}
}

// valueOf returns the path of a value, if a pipeline is nothing else.
func (r *reader) valueOf(pipe *parse.PipeNode) string {
	if len(pipe.Cmds) != 1 || len(pipe.Cmds[0].Args) != 1 {
		return ""
	}
	return r.path(pipe.Cmds[0].Args[0])
}

// command reads a function and its arguments, or a single value.
func (r *reader) command(command *parse.CommandNode, around guard, into string) {
	name := ident(command.Args[0])
	if name == "" {
		name = field(command.Args[0])
	}
	if name != "" {
		r.note(name, command.Args[1:], command.Args[0].Position(), around, into)
	}
	for i, arg := range command.Args {
		inner := around
		for _, path := range r.wins(name, command.Args, i) {
			inner = inner.or(path)
		}
		switch n := arg.(type) {
		case *parse.PipeNode:
			r.nested(n, inner, into)
		case *parse.ChainNode:
			if pipe, ok := n.Node.(*parse.PipeNode); ok {
				r.nested(pipe, inner, into)
			}
		default:
			if name := field(arg); i > 0 && name != "" {
				r.note(name, nil, arg.Position(), inner, into)
			} else if name := ident(arg); i > 0 && name != "" {
				r.note(name, nil, arg.Position(), inner, into)
			}
		}
	}
}

// nested reads a pipeline in parentheses. What it makes goes where the whole
// action goes.
func (r *reader) nested(pipe *parse.PipeNode, around guard, into string) {
	before := len(r.all.calls)
	r.pipe(pipe, around)
	for i := before; i < len(r.all.calls); i++ {
		if r.all.calls[i].into == "" {
			r.all.calls[i].into = into
		}
	}
}

// wins returns the values that, if they are set, take the place of one of the
// arguments of a function: (default ARG VALUE), (coalesce VALUE … ARG …).
func (r *reader) wins(function string, args []parse.Node, i int) []string {
	var others []parse.Node
	switch {
	case function == "default" && i == 1 && len(args) == 3:
		others = args[2:]
	case (function == "coalesce" || function == "or") && i > 1:
		others = args[1:i]
	}
	var paths []string
	for _, other := range others {
		if path := r.path(other); path != "" {
			paths = append(paths, path)
		}
	}
	return paths
}

// path returns the path below .Values of a value, empty for anything else.
func (r *reader) path(node parse.Node) string {
	if pipe, ok := node.(*parse.PipeNode); ok {
		return r.valueOf(pipe)
	}
	if variable, ok := node.(*parse.VariableNode); ok && len(variable.Ident) == 1 {
		return r.paths[variable.Ident[0]]
	}
	path, _ := strings.CutPrefix(field(node), "Values.")
	if path == field(node) {
		return ""
	}
	return path
}

// looks tells whether a pipeline depends on what a lookup finds.
func (r *reader) looks(pipe *parse.PipeNode) bool {
	found := r.looksItself(pipe)
	analysis.Walk(pipe, func(node parse.Node) bool {
		if n, ok := node.(*parse.CommandNode); ok && len(n.Args) > 1 && ident(n.Args[0]) == "include" {
			literal, ok := n.Args[1].(*parse.StringNode)
			found = found || ok && r.all.reads[literal.Text]
		}
		return !found
	})
	return found
}

// looksItself is looks, but for what is included.
func (r *reader) looksItself(pipe *parse.PipeNode) bool {
	found := false
	analysis.Walk(pipe, func(node parse.Node) bool {
		switch n := node.(type) {
		case *parse.IdentifierNode:
			found = found || n.Ident == "lookup"
		case *parse.VariableNode:
			found = found || r.held[n.Ident[0]]
		}
		return !found
	})
	return found
}

func (r *reader) note(name string, args []parse.Node, pos parse.Pos, around guard, into string) {
	if around.included && (name == "include" || name == "template") {
		around.lookup = false
	}
	r.all.calls = append(r.all.calls, call{file: r.file, in: r.in, name: name, args: args, pos: pos, guard: around, into: into})
	if name == "include" && len(args) > 0 {
		if _, literal := args[0].(*parse.StringNode); !literal {
			r.all.computed = true
		}
	}
}

func ident(node parse.Node) string {
	if n, ok := node.(*parse.IdentifierNode); ok {
		return n.Ident
	}
	return ""
}

// roots of what every template gets.
var fields = []string{"Values", "Release", "Files", "Capabilities", "Chart", "Template"}

// field returns a field of what templates get, from wherever it is read:
// .Release.Name, $.Release.Name and $top.Release.Name alike.
func field(node parse.Node) string {
	var path []string
	switch n := node.(type) {
	case *parse.FieldNode:
		path = n.Ident
	case *parse.VariableNode:
		path = n.Ident[1:]
	case *parse.ChainNode:
		path = n.Field
	}
	for i, name := range path {
		if slices.Contains(fields, name) {
			return strings.Join(path[i:], ".")
		}
	}
	return ""
}
