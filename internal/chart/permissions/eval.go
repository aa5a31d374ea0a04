package permissions

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"text/template/parse"
)

// value is what an expression gives.
type value struct {
	texts
	// items are the members of a list of texts.
	items texts
	// includes are the templates whose text it prints, indent how far in, and
	// newline whether on a line of its own.
	includes []string
	indent   int
	newline  bool
}

// evaluate returns what a pipeline can print.
func (r *reader) evaluate(pipe *parse.PipeNode, at place) value {
	var v value
	if pipe == nil || at.depth > maxIncludes {
		return v
	}
	for i, command := range pipe.Cmds {
		var piped *value
		if i > 0 {
			before := v
			piped = &before
		}
		v = r.command(command, piped, at)
	}
	return v
}

func (r *reader) command(command *parse.CommandNode, piped *value, at place) value {
	name, ok := command.Args[0].(*parse.IdentifierNode)
	if !ok {
		if len(command.Args) > 1 {
			return value{}
		}
		return r.operand(command.Args[0], at)
	}
	args := make([]value, 0, len(command.Args))
	for _, arg := range command.Args[1:] {
		args = append(args, r.operand(arg, at))
	}
	if piped != nil {
		args = append(args, *piped)
	}
	return r.call(name.Ident, args, at)
}

// operand returns what one argument can be.
func (r *reader) operand(node parse.Node, at place) value {
	switch n := node.(type) {
	case *parse.StringNode:
		return value{texts: of(n.Text)}
	case *parse.NumberNode:
		return value{texts: of(n.Text)}
	case *parse.BoolNode:
		return value{texts: of(strconv.FormatBool(n.True))}
	case *parse.PipeNode:
		return r.evaluate(n, at)
	case *parse.DotNode:
		return value{texts: at.dot}
	case *parse.FieldNode:
		return value{texts: r.field(n.Ident, at)}
	case *parse.VariableNode:
		if n.Ident[0] == "$" {
			return value{texts: r.field(n.Ident[1:], at)}
		}
		if len(n.Ident) == 1 {
			return value{texts: r.variables[at.file.Path+n.Ident[0]]}
		}
	case *parse.IdentifierNode:
		return r.call(n.Ident, nil, at)
	}
	return value{}
}

// include returns what a named template prints. Where the name is computed, it
// may be one that stands among the arguments.
func (r *reader) include(args []value, at place) value {
	var v value
	if len(args) == 0 {
		return v
	}
	if args[0].complete {
		v.complete = true
	}
	for _, arg := range args {
		for _, text := range slices.Concat(arg.list, arg.items.list) {
			if _, ok := r.defines[text]; ok && !slices.Contains(v.includes, text) {
				v.includes = append(v.includes, text)
			}
		}
	}
	known := of()
	for _, name := range args[0].list {
		definition, ok := r.defines[name]
		if !ok {
			return value{includes: v.includes}
		}
		inside := place{file: definition.file, depth: at.depth + 1}
		known = known.or(r.output(definition.tree.Root, inside).each(strings.TrimSpace))
	}
	if !v.complete || len(known.list) == 0 {
		return value{includes: v.includes}
	}
	v.texts = known
	return v
}

// output returns what a part of a template prints.
func (r *reader) output(list *parse.ListNode, at place) texts {
	all := of("")
	if list == nil || at.depth > maxIncludes {
		return all
	}
	for _, node := range list.Nodes {
		switch n := node.(type) {
		case *parse.TextNode:
			all = product(all, of(string(n.Text)))
		case *parse.ActionNode:
			if len(n.Pipe.Decl) == 0 {
				all = product(all, r.evaluate(n.Pipe, at).texts)
			}
		case *parse.TemplateNode:
			all = product(all, r.include([]value{{texts: of(n.Name)}}, at).texts)
		case *parse.IfNode:
			all = product(all, r.output(n.List, at).or(r.output(n.ElseList, at)))
		case *parse.WithNode:
			inside := at
			inside.dot = r.evaluate(n.Pipe, at).texts
			all = product(all, r.output(n.List, inside).or(r.output(n.ElseList, at)))
		case *parse.RangeNode:
			inside := at
			inside.dot = r.evaluate(n.Pipe, at).items
			all = product(all, r.output(n.List, inside).or(r.output(n.ElseList, at)))
		}
	}
	return all
}

// field returns what a value can be: what the schema lists, or the default and
// whatever else somebody may give.
func (r *reader) field(ident []string, at place) texts {
	if len(ident) < 2 || ident[0] != "Values" {
		return texts{}
	}
	// A subchart has its values below its name.
	keys := append(subchart(at.file.Path), ident[1:]...)
	for _, leaf := range r.enums.list {
		if slices.Equal(leaf.path, keys) {
			var t texts
			for _, v := range leaf.values {
				t.list = append(t.list, fmt.Sprint(v))
			}
			t.complete = true
			return t
		}
	}
	var current any = r.values
	for _, key := range keys {
		object, _ := current.(map[string]any)
		current = object[key]
	}
	if text, ok := current.(string); ok && text != "" {
		return texts{list: []string{text}}
	}
	return texts{}
}

// subchart returns the names of the subcharts that a template is in.
func subchart(file string) []string {
	var names []string
	parts := strings.Split(path.Dir(file), "/")
	for i := 0; i+1 < len(parts) && parts[i] == "charts"; i += 2 {
		names = append(names, parts[i+1])
	}
	return names
}
