package render

import (
	"reflect"
	"text/template/parse"
)

// Functions that stand in no chart: they are put into the parsed templates.
const (
	turnFunction  = "chartwright_turn"
	enterFunction = "chartwright_enter"
	leaveFunction = "chartwright_leave"
	printFunction = "chartwright_print"
)

// instrument puts the calls into a parsed template.
func instrument(tree *parse.Tree) {
	if tree.Root != nil {
		instrumenter{tree}.list(tree.Root)
	}
}

type instrumenter struct{ tree *parse.Tree }

func (i instrumenter) list(list *parse.ListNode) {
	if list == nil {
		return
	}
	nodes := make([]parse.Node, 0, len(list.Nodes))
	for _, node := range list.Nodes {
		switch n := node.(type) {
		case *parse.ActionNode:
			i.action(n)
		case *parse.IfNode:
			i.list(n.List)
			i.list(n.ElseList)
		case *parse.WithNode:
			i.list(n.List)
			i.list(n.ElseList)
		case *parse.RangeNode:
			i.list(n.List)
			i.list(n.ElseList)
			n.List.Nodes = append([]parse.Node{i.call(turnFunction, n.Pos, n.Line)}, n.List.Nodes...)
		case *parse.TemplateNode:
			nodes = append(nodes, i.call(enterFunction, n.Pos, n.Line), n, i.call(leaveFunction, n.Pos, n.Line))
			continue
		}
		nodes = append(nodes, node)
	}
	list.Nodes = nodes
}

// call returns the action {{ name }}.
func (i instrumenter) call(name string, pos parse.Pos, line int) parse.Node {
	return &parse.ActionNode{NodeType: parse.NodeAction, Pos: pos, Line: line, Pipe: &parse.PipeNode{
		NodeType: parse.NodePipe, Pos: pos, Line: line, Cmds: []*parse.CommandNode{i.command(name, pos)},
	}}
}

func (i instrumenter) command(name string, pos parse.Pos) *parse.CommandNode {
	return &parse.CommandNode{NodeType: parse.NodeCommand, Pos: pos, Args: []parse.Node{
		parse.NewIdentifier(name).SetTree(i.tree).SetPos(pos),
	}}
}

// action adds a last command to an action that may write a value of any size.
func (i instrumenter) action(n *parse.ActionNode) {
	if len(n.Pipe.Decl) > 0 || len(n.Pipe.Cmds) == 0 {
		return
	}
	switch first := n.Pipe.Cmds[len(n.Pipe.Cmds)-1].Args[0].(type) {
	case *parse.StringNode, *parse.NumberNode, *parse.BoolNode:
		return
	case *parse.IdentifierNode:
		if f := functions[first.Ident]; builtins[first.Ident] == "" || f != nil && reflect.TypeOf(f).Out(0).Kind() == reflect.String {
			return
		}
	}
	n.Pipe.Cmds = append(n.Pipe.Cmds, i.command(printFunction, n.Pos))
}

// print passes a value on that is going to be written. It takes and gives a
// reflect.Value, for some values are written otherwise when they are copied.
func (b *budget) print(value reflect.Value) reflect.Value {
	switch kind := value.Kind(); {
	case kind == reflect.Invalid, kind <= reflect.Complex128, kind == reflect.String:
	case value.CanInterface():
		b.weigh("an action", value.Interface())
	}
	return value
}
