package render

import (
	"reflect"
	"slices"
	"strconv"
	"text/template/parse"

	"github.com/chartwright/chartwright/internal/chart/analysis"
)

// Names of the functions that are inserted into parsed templates. No chart uses them.
const (
	turnFunction  = "chartwright_turn"
	enterFunction = "chartwright_enter"
	leaveFunction = "chartwright_leave"
	weighFunction = "chartwright_weigh"
	// These functions return their argument.
	printFunction = "chartwright_print"
	rangeFunction = "chartwright_range"
	madeFunction  = "chartwright_made"
	afterFunction = "chartwright_after"
)

// nestedActions is the number of nested actions or brackets that use as much stack as a
// template call.
const nestedActions = 10

// instrument inserts the calls into a parsed template. A wrapped expression becomes an
// argument in brackets, not the start of a pipeline, so that errors have the same position
// and text as without the call.
func instrument(tree *parse.Tree) {
	if tree.Root == nil {
		return
	}
	i := instrumenter{tree: tree}
	i.list(tree.Root)
	if depth := i.deepest / nestedActions; depth > 0 {
		tree.Root.Nodes = slices.Concat(
			[]parse.Node{i.action(enterFunction, depth, 0, 1)}, tree.Root.Nodes, []parse.Node{i.action(leaveFunction, depth, 0, 1)},
		)
	}
}

type instrumenter struct {
	tree           *parse.Tree
	depth, deepest int
}

func (i *instrumenter) down() { i.depth++; i.deepest = max(i.deepest, i.depth) }
func (i *instrumenter) up()   { i.depth-- }

func (i *instrumenter) list(list *parse.ListNode) {
	if list == nil {
		return
	}
	i.down()
	defer i.up()
	nodes := make([]parse.Node, 0, len(list.Nodes))
	for _, node := range list.Nodes {
		switch n := node.(type) {
		case *parse.ActionNode:
			i.pipe(n.Pipe)
			if len(n.Pipe.Decl) == 0 && !returns(n.Pipe, reflect.String) {
				i.wrap(n.Pipe, printFunction)
			}
		case *parse.IfNode:
			i.branch(&n.BranchNode)
		case *parse.WithNode:
			i.branch(&n.BranchNode)
		case *parse.RangeNode:
			i.branch(&n.BranchNode)
			if !returns(n.Pipe, reflect.Slice) {
				i.wrap(n.Pipe, rangeFunction)
			}
			n.List.Nodes = append([]parse.Node{i.action(turnFunction, 1, n.Pos, n.Line)}, n.List.Nodes...)
		case *parse.TemplateNode:
			i.pipe(n.Pipe)
			nodes = append(nodes, i.action(enterFunction, 1, n.Pos, n.Line), n, i.action(leaveFunction, 1, n.Pos, n.Line))
			continue
		}
		nodes = append(nodes, node)
	}
	list.Nodes = nodes
}

func (i *instrumenter) branch(n *parse.BranchNode) {
	i.pipe(n.Pipe)
	i.list(n.List)
	i.list(n.ElseList)
}

func (i *instrumenter) pipe(pipe *parse.PipeNode) {
	if pipe == nil {
		return
	}
	i.down()
	defer i.up()
	commands := make([]*parse.CommandNode, 0, len(pipe.Cmds))
	for n, command := range pipe.Cmds {
		for at, arg := range command.Args {
			command.Args[at] = i.operand(arg, at > 0)
		}
		switch makes := callsMaker(command.Args[0]); {
		case makes && n == 0:
			commands = append(commands, i.making(command))
		case makes:
			// The method gets the result of the previous command.
			commands = append(commands, command, i.command(madeFunction, command.Pos))
		default:
			commands = append(commands, command)
		}
	}
	pipe.Cmds = commands
}

// operand returns the replacement for a part of a command.
func (i *instrumenter) operand(node parse.Node, argument bool) parse.Node {
	switch n := node.(type) {
	case *parse.PipeNode:
		i.pipe(n)
		return n
	case *parse.ChainNode:
		n.Node = i.operand(n.Node, false)
	}
	if argument && callsMaker(node) {
		node = i.pipeOf(i.making(i.commandOf(node)))
	}
	return node
}

// making counts the result of a method at the start of a pipeline.
func (i *instrumenter) making(command *parse.CommandNode) *parse.CommandNode {
	at := slices.Index(analysis.Fields(command.Args[0]), "YAML")
	if at < 0 {
		return i.command(madeFunction, command.Pos, i.pipeOf(command))
	}
	return i.command(afterFunction, command.Pos, i.pipeOf(i.weighing(command.Args[0], at)), i.pipeOf(command))
}

// weighing weighs the value whose method YAML is called. The method is the field at the
// index.
func (i *instrumenter) weighing(node parse.Node, at int) *parse.CommandNode {
	var from parse.Node
	switch n := node.(type) {
	case *parse.VariableNode:
		from = &parse.VariableNode{NodeType: parse.NodeVariable, Pos: n.Pos, Ident: n.Ident[:1]}
	case *parse.ChainNode:
		from = n.Node
	default:
		from = &parse.DotNode{NodeType: parse.NodeDot, Pos: node.Position()}
	}
	return i.fields(weighFunction, from, analysis.Fields(node)[:at])
}

// Makes reports whether a method of a value in templates creates a large result, which is
// counted.
func Makes(method string) bool { return slices.Contains(makers, method) }

// makers holds the methods of values in templates that create large results: of .Files,
// times and versions.
var makers = []string{
	"Get", "Glob", "Lines", "AsConfig", "AsSecrets", "YAML", "Format", "AppendFormat", "String", "GoString",
	"MarshalText", "MarshalJSON", "MarshalBinary", "GobEncode", "AppendText", "AppendBinary", "Value",
}

func callsMaker(node parse.Node) bool { return slices.ContainsFunc(analysis.Fields(node), Makes) }

// returns reports whether a pipeline ends in a constant or in a function whose result is
// always of the kind.
func returns(pipe *parse.PipeNode, kind reflect.Kind) bool {
	switch last := pipe.Cmds[len(pipe.Cmds)-1].Args[0].(type) {
	case *parse.StringNode, *parse.NumberNode, *parse.BoolNode:
		return true
	case *parse.IdentifierNode:
		if f := functions[last.Ident]; f != nil {
			return reflect.TypeOf(f).Out(0).Kind() == kind
		}
		return kind == reflect.String && builtins[last.Ident] == ""
	}
	return false
}

// action returns the action {{ name number }}.
func (i *instrumenter) action(name string, number int, pos parse.Pos, line int) parse.Node {
	command := i.command(name, pos)
	command.Args = append(command.Args, &parse.NumberNode{
		NodeType: parse.NodeNumber, Pos: pos, IsInt: true, Int64: int64(number), Text: strconv.Itoa(number),
	})
	pipe := i.pipeOf(command)
	return &parse.ActionNode{NodeType: parse.NodeAction, Pos: pos, Line: line, Pipe: pipe}
}

// wrap calls a function with the result of a pipeline.
func (i *instrumenter) wrap(pipe *parse.PipeNode, function string) {
	if first := pipe.Cmds[0].Args; len(first) > 1 && first[0].Type() == parse.NodePipe {
		// Brackets accept no arguments. The error must refer to the whole pipeline.
		return
	}
	inner := i.pipeOf(pipe.Cmds...)
	inner.Line = pipe.Line
	pipe.Cmds = []*parse.CommandNode{i.command(function, pipe.Pos, inner)}
}

func (i *instrumenter) command(name string, pos parse.Pos, args ...parse.Node) *parse.CommandNode {
	function := parse.NewIdentifier(name).SetTree(i.tree).SetPos(pos)
	return &parse.CommandNode{NodeType: parse.NodeCommand, Pos: pos, Args: append([]parse.Node{function}, args...)}
}

func (i *instrumenter) commandOf(operand parse.Node) *parse.CommandNode {
	return &parse.CommandNode{NodeType: parse.NodeCommand, Pos: operand.Position(), Args: []parse.Node{operand}}
}

func (i *instrumenter) pipeOf(commands ...*parse.CommandNode) *parse.PipeNode {
	return &parse.PipeNode{NodeType: parse.NodePipe, Pos: commands[0].Pos, Cmds: commands}
}

// fields returns a call of a function with a value and the names of fields.
func (i *instrumenter) fields(function string, from parse.Node, names []string) *parse.CommandNode {
	command := i.command(function, from.Position(), from)
	for _, name := range names {
		command.Args = append(command.Args, &parse.StringNode{NodeType: parse.NodeString, Pos: from.Position(), Quoted: strconv.Quote(name), Text: name})
	}
	return command
}
