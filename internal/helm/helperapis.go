package helm

import (
	"text/template/parse"

	"github.com/chartwright/chartwright/internal/chart/analysis"
)

// question asks for the API that a helper is given under a key of its dict, as
// "version" in
//
//	{{ define "has" }}{{ .context.Capabilities.APIVersions.Has .version }}{{ end }}
type question struct {
	command *parse.CommandNode
	key     string
}

// parameters returns the questions of a helper whose dot is its argument
// everywhere, and which passes that to no function that could change it.
func (r *reach) parameters(name string) (found []question) {
	for _, tree := range r.trees[name] {
		analysis.Walk(tree.Root, func(node parse.Node) bool {
			command, ok := node.(*parse.CommandNode)
			if !ok {
				return true
			}
			if argument, ok := asksForAPI(command).(*parse.FieldNode); ok && len(argument.Ident) == 1 && keepsDot(tree) {
				found = append(found, question{command, argument.Ident[0]})
			}
			return true
		})
	}
	return found
}

// keepsDot reports whether a template neither moves its dot nor passes it on.
func keepsDot(tree *parse.Tree) bool {
	keeps := true
	analysis.Walk(tree.Root, func(node parse.Node) bool {
		switch n := node.(type) {
		case *parse.RangeNode, *parse.WithNode, *parse.DotNode:
			keeps = false
		case *parse.VariableNode:
			keeps = keeps && (n.Ident[0] != "$" || len(n.Ident) > 1)
		}
		return keeps
	})
	return keeps
}

// arguments returns the texts that a helper is given under a key of its dict, and
// reports whether these are all: any other argument may be any API.
func (r *reach) arguments(helper, key string) (texts []string, all bool) {
	if r.texts.unknown || r.texts.names[helper] {
		return nil, false
	}
	all = true
	pass := func(argument parse.Node) {
		text, ok := inDict(argument, key)
		texts, all = append(texts, text), all && ok
	}
	for name := range r.reached {
		if name == helper {
			all = all && !r.calls[name].names[helper]
			continue
		}
		all = all && !r.calls[name].quoted[helper] && !r.calls[name].unknown
		for _, tree := range r.trees[name] {
			analysis.Walk(tree.Root, func(node parse.Node) bool {
				switch n := node.(type) {
				case *parse.TemplateNode:
					if n.Name == helper {
						pass(n.Pipe)
					}
				case *parse.CommandNode:
					if !includes(n, helper) {
						return true
					}
					if len(n.Args) != 3 {
						all = false // the argument comes through a pipe
						return true
					}
					pass(n.Args[2])
				}
				return true
			})
		}
	}
	return texts, all && len(texts) > 0
}

// includes reports whether a command includes a template, by its name.
func includes(command *parse.CommandNode, template string) bool {
	if len(command.Args) < 2 {
		return false
	}
	function, ok := command.Args[0].(*parse.IdentifierNode)
	name, literal := command.Args[1].(*parse.StringNode)
	return ok && function.Ident == "include" && literal && name.Text == template
}

// inDict returns the text under a key of (dict "key" "text" …).
func inDict(node parse.Node, key string) (found string, ok bool) {
	pipe, isPipe := node.(*parse.PipeNode)
	if !isPipe || pipe == nil || len(pipe.Cmds) != 1 || len(pipe.Decl) > 0 {
		return "", false
	}
	args := pipe.Cmds[0].Args
	if len(args) == 1 {
		return inDict(args[0], key) // in parentheses, once more
	}
	if function, isFunction := args[0].(*parse.IdentifierNode); !isFunction || function.Ident != "dict" {
		return "", false
	}
	for i := 1; i+1 < len(args); i += 2 {
		name, literal := args[i].(*parse.StringNode)
		if !literal {
			return "", false // it may be the same key
		}
		if name.Text != key {
			continue
		}
		text, literal := args[i+1].(*parse.StringNode)
		if !literal {
			return "", false
		}
		found, ok = text.Text, true
	}
	return found, ok
}
