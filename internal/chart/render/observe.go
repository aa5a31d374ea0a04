package render

import (
	"slices"
	"text/template/parse"

	"github.com/chartwright/chartwright/internal/chart/analysis"
)

// Names of the functions that are inserted into traced templates. See Trace.functions.
const (
	readFunction     = "chartwright_read"
	readInFunction   = "chartwright_readin"
	readKeysFunction = "chartwright_readkeys"
	readAllFunction  = "chartwright_readall"
)

// observe inserts calls into a parsed template that record which values it reads. Before
// each node, they record the fields that the node can read, whether or not it does.
func observe(tree *parse.Tree) {
	if tree.Root != nil {
		o := observer{instrumenter{tree: tree}}
		o.list(tree.Root)
	}
}

type observer struct{ instrumenter }

func (o *observer) list(list *parse.ListNode) {
	if list == nil {
		return
	}
	nodes := make([]parse.Node, 0, len(list.Nodes))
	for _, node := range list.Nodes {
		var pipe *parse.PipeNode
		switch n := node.(type) {
		case *parse.ActionNode:
			pipe = n.Pipe
		case *parse.TemplateNode:
			pipe = n.Pipe
		default:
			if branch := analysis.BranchOf(node); branch != nil {
				o.list(branch.List)
				o.list(branch.ElseList)
				pipe = branch.Pipe
			}
		}
		if pipe != nil {
			for _, read := range o.pipe(pipe, nil) {
				nodes = append(nodes, &parse.ActionNode{NodeType: parse.NodeAction, Pos: pipe.Pos, Line: pipe.Line, Pipe: o.pipeOf(read)})
			}
		}
		nodes = append(nodes, node)
	}
	list.Nodes = nodes
}

// pipe adds calls for the fields that a pipeline reads, and inserts calls where the value
// is known only while the pipeline is executed.
func (o *observer) pipe(pipe *parse.PipeNode, to []*parse.CommandNode) []*parse.CommandNode {
	commands := make([]*parse.CommandNode, 0, len(pipe.Cmds))
	for n, command := range pipe.Cmds {
		for _, arg := range command.Args {
			to = o.operand(arg, to)
		}
		if o.builtin(command, n > 0) && n > 0 {
			// The last argument is the result of the previous command.
			commands = append(commands, o.command(readAllFunction, command.Pos))
		}
		commands = append(commands, command)
	}
	pipe.Cmds = commands
	return to
}

// operand adds calls for the fields that a part of a command reads.
func (o *observer) operand(node parse.Node, to []*parse.CommandNode) []*parse.CommandNode {
	switch n := node.(type) {
	case *parse.FieldNode:
		return append(to, o.fields(readFunction, o.dot(n.Pos), n.Ident))
	case *parse.VariableNode:
		if len(n.Ident) > 1 {
			variable := &parse.VariableNode{NodeType: parse.NodeVariable, Pos: n.Pos, Ident: n.Ident[:1]}
			return append(to, o.fields(readFunction, variable, n.Ident[1:]))
		}
	case *parse.PipeNode:
		return o.pipe(n, to)
	case *parse.ChainNode:
		to = o.operand(n.Node, to)
		n.Node = o.pipeOf(o.fields(readInFunction, n.Node, n.Field))
	}
	return to
}

// builtin inserts calls into a call of a function of text/template that reads maps, and
// reports whether the command is such a call.
func (o *observer) builtin(command *parse.CommandNode, piped bool) bool {
	function, ok := command.Args[0].(*parse.IdentifierNode)
	if !ok || !slices.Contains([]string{"index", "len", "slice", "call"}, function.Ident) {
		return false
	}
	args := command.Args[1:]
	if function.Ident == "index" && !piped && len(args) > 0 && !slices.ContainsFunc(args[1:], computed) {
		args[0] = o.pipeOf(o.command(readKeysFunction, command.Pos, args...))
		return true
	}
	for i, arg := range args {
		args[i] = o.pipeOf(o.command(readAllFunction, command.Pos, arg))
	}
	return true
}

// computed reports whether an argument must not be evaluated twice.
func computed(argument parse.Node) bool {
	switch argument.Type() {
	case parse.NodeString, parse.NodeNumber, parse.NodeVariable, parse.NodeField, parse.NodeDot:
		return false
	}
	return true
}

func (o *observer) dot(pos parse.Pos) parse.Node {
	return &parse.DotNode{NodeType: parse.NodeDot, Pos: pos}
}
