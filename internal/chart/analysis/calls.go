package analysis

import (
	"slices"
	"strings"
	"text/template/parse"

	"k8s.io/apimachinery/pkg/util/sets"
)

// Call is a call of a function, or a read of a field of the root object, in a template.
type Call struct {
	File File
	// Template is the name of the template that contains the call: a named template, or
	// the file's own.
	Template string
	// Name is the name of the function, or the path of the field without the first dot:
	// Release.Revision. Args are the arguments of the function, except a piped one. A
	// template action is a call of "template" with the name as argument.
	Name string
	Args []parse.Node
	// Unless are paths of values below .Values. If one of these values is set, the chart
	// uses it instead of the call's result.
	Unless []string

	pos      parse.Pos
	lookedUp bool
	// variable is the variable that the action assigns.
	variable string
}

// Line returns the line of the call in its file.
func (c Call) Line() int { return c.File.Line(c.pos) }

// includes returns the name of the template that the call includes. It is empty for other
// calls, and if the name is computed.
func (c Call) includes() string {
	if c.Name != "include" && c.Name != "template" || len(c.Args) == 0 {
		return ""
	}
	name, _ := Literal(c.Args[0])
	return name
}

// Calls holds all calls in the templates of a chart, in the order of the files,
// the names of the templates, and the text.
type Calls struct {
	All []Call
	// readers are the templates that call lookup, directly or by an included template.
	readers sets.Set[string]
	// lookedUp are the variables, by template, that can contain the result of a lookup.
	lookedUp map[string]map[string]bool
	// rendered are the templates that Helm renders as files.
	rendered map[string]bool
	// computed is true if a template is included by a computed name.
	computed bool
}

// ReadCalls returns the calls in the templates of a chart.
func ReadCalls(files []File) *Calls {
	all := &Calls{readers: clusterReaders(files), lookedUp: map[string]map[string]bool{}, rendered: map[string]bool{}}
	for _, file := range files {
		for _, tree := range file.Trees {
			if file.Rendered(tree) {
				all.rendered[tree.Name] = true
			}
			all.lookedUp[tree.Name] = map[string]bool{}
			r := &callReader{Calls: all, file: file, template: tree.Name, lookedUp: all.lookedUp[tree.Name], paths: map[string]string{}}
			r.list(tree.Root, guard{})
		}
	}
	return all
}

// Named returns the calls of a function with at least this number of arguments.
func (c *Calls) Named(name string, args int) []Call {
	return slices.DeleteFunc(slices.Clone(c.All), func(call Call) bool { return call.Name != name || len(call.Args) < args })
}

// Executed reports whether a template can be executed.
func (c *Calls) Executed(template string) bool { return c.executed(template, map[string]bool{}) }

func (c *Calls) executed(template string, seen map[string]bool) bool {
	if c.rendered[template] {
		return true
	}
	if seen[template] {
		return false
	}
	seen[template] = true
	included := false
	for _, call := range c.All {
		if call.includes() != template {
			continue
		}
		included = true
		if c.executed(call.Template, seen) {
			return true
		}
	}
	return !included && c.computed
}

// Kept reports whether the result of a call is the same in each revision, because a lookup
// or a value replaces it, either around the call or around every inclusion of its template.
// isSet reports whether a value is set in every release; its path is relative to the values
// of the file's chart.
func (c *Calls) Kept(call Call, isSet func(file File, path string) bool) bool {
	return c.kept(call, isSet, map[string]bool{})
}

func (c *Calls) kept(call Call, isSet func(file File, path string) bool, seen map[string]bool) bool {
	set := func(path string) bool { return isSet(call.File, path) }
	if call.lookedUp || call.variable != "" && c.lookedUp[call.Template][call.variable] || slices.ContainsFunc(call.Unless, set) {
		return true
	}
	if c.rendered[call.Template] || seen[call.Template] {
		return false
	}
	seen[call.Template] = true
	found := false
	for _, by := range c.All {
		if by.includes() != call.Template || !c.Executed(by.Template) {
			continue
		}
		found = true
		if !c.kept(by, isSet, seen) {
			return false
		}
	}
	return found
}

// clusterReaders returns the names of the templates that call lookup, and of those that
// include them.
func clusterReaders(files []File) sets.Set[string] {
	readers := sets.Set[string]{}
	includedBy := map[string][]string{}
	for _, file := range files {
		for _, tree := range file.Trees {
			Walk(tree.Root, func(node parse.Node) bool {
				switch n := node.(type) {
				case *parse.IdentifierNode:
					if n.Ident == "lookup" {
						readers.Insert(tree.Name)
					}
				case *parse.StringNode:
					// This is the name in an include. Other texts have no effect.
					includedBy[n.Text] = append(includedBy[n.Text], tree.Name)
				case *parse.TemplateNode:
					includedBy[n.Name] = append(includedBy[n.Name], tree.Name)
				}
				return true
			})
		}
	}
	addIncluding(readers, includedBy)
	return readers
}

// guard holds the conditions of a call, or of the use of its result.
type guard struct {
	// lookedUp is true if the conditions depend on objects in the cluster.
	lookedUp bool
	// byInclude is true if this applies only to the call's own pipeline, which includes a
	// template that calls lookup. Other calls in that template have no condition.
	byInclude bool
	// unless is Call.Unless.
	unless []string
}

// or returns the guard with one more value that can replace the result.
func (g guard) or(value string) guard {
	if value != "" {
		g.unless = append(slices.Clip(g.unless), value)
	}
	return g
}

// callReader reads the calls of one template with their guards.
type callReader struct {
	*Calls
	file     File
	template string
	// lookedUp are the variables that can contain the result of a lookup.
	lookedUp map[string]bool
	// paths holds, by variable, the path of the value that is assigned to it.
	paths map[string]string
}

func (r *callReader) list(list *parse.ListNode, around guard) {
	if list == nil {
		return
	}
	for _, node := range list.Nodes {
		switch n := node.(type) {
		case *parse.ActionNode:
			r.pipe(n.Pipe, around)
		case *parse.TemplateNode:
			r.add("template", []parse.Node{&parse.StringNode{Text: n.Name}}, n.Pos, around, "")
			r.pipe(n.Pipe, around)
		default:
			if branch := BranchOf(node); branch != nil {
				r.branch(branch, around)
			}
		}
	}
}

// branch reads both branches of a condition.
func (r *callReader) branch(n *parse.BranchNode, around guard) {
	r.pipe(n.Pipe, around)
	if r.looksUp(n.Pipe, true) {
		around.lookedUp, around.byInclude = true, false
	}
	then, otherwise := around, around
	if path, negated := r.condition(n.Pipe); negated {
		then = around.or(path)
	} else {
		otherwise = around.or(path)
	}
	r.list(n.List, then)
	r.list(n.ElseList, otherwise)
}

// condition returns the path of the value in a condition, and whether the condition is
// negated: {{ if .Values.a }}, {{ if not .Values.a }}.
func (r *callReader) condition(pipe *parse.PipeNode) (path string, negated bool) {
	if len(pipe.Cmds) == 1 && len(pipe.Cmds[0].Args) == 2 {
		args := pipe.Cmds[0].Args
		if name := Function(args[0]); name == "not" || name == "empty" {
			return r.path(args[1]), true
		}
	}
	return r.pathOf(pipe.Cmds), false
}

// pipe reads a pipeline: {{ $a := first | second }}.
func (r *callReader) pipe(pipe *parse.PipeNode, around guard) {
	if pipe == nil {
		return
	}
	switch {
	case r.looksUp(pipe, false):
		around.lookedUp, around.byInclude = true, false
	case !around.lookedUp && r.looksUp(pipe, true):
		around.lookedUp, around.byInclude = true, true
	}
	assigned := ""
	for _, variable := range pipe.Decl {
		assigned = variable.Ident[0]
		// An assignment that depends on a lookup counts as a result of the lookup.
		if around.lookedUp {
			r.lookedUp[assigned] = true
		}
		if path := r.pathOf(pipe.Cmds); path != "" {
			r.paths[assigned] = path
		}
	}
	for i, command := range pipe.Cmds {
		inner := around
		if i > 0 && Function(command.Args[0]) == "default" {
			// The piped value has precedence over the argument.
			inner = inner.or(r.pathOf(pipe.Cmds[:i]))
		}
		r.command(command, inner, assigned)
	}
}

// command reads a function and its arguments, or a single value.
func (r *callReader) command(command *parse.CommandNode, around guard, variable string) {
	first := command.Args[0]
	name := nameOf(first)
	if name != "" {
		r.add(name, command.Args[1:], first.Position(), around, variable)
	}
	for i, arg := range command.Args {
		inner := around
		for _, other := range winners(name, command.Args, i) {
			inner = inner.or(r.path(other))
		}
		if chain, ok := arg.(*parse.ChainNode); ok && chain.Node.Type() == parse.NodePipe {
			arg = chain.Node
		} else if ok {
			continue
		}
		if pipe, ok := arg.(*parse.PipeNode); ok {
			r.nested(pipe, inner, variable)
		} else if name := nameOf(arg); i > 0 && name != "" {
			r.add(name, nil, arg.Position(), inner, variable)
		}
	}
}

// nested reads a pipeline in parentheses. Its calls get the variable of the whole action.
func (r *callReader) nested(pipe *parse.PipeNode, around guard, variable string) {
	before := len(r.All)
	r.pipe(pipe, around)
	for i := before; i < len(r.All); i++ {
		if r.All[i].variable == "" {
			r.All[i].variable = variable
		}
	}
}

// winners returns the arguments of a function that have precedence over an argument if they
// are set: (default ARG VALUE), (coalesce VALUE … ARG …).
func winners(function string, args []parse.Node, i int) []parse.Node {
	switch {
	case function == "default" && i == 1 && len(args) == 3:
		return args[2:]
	case (function == "coalesce" || function == "or") && i > 1:
		return args[1:i]
	}
	return nil
}

// pathOf returns the path of a value if the commands only read this value.
func (r *callReader) pathOf(commands []*parse.CommandNode) string {
	if len(commands) != 1 || len(commands[0].Args) != 1 {
		return ""
	}
	return r.path(commands[0].Args[0])
}

// path returns the path of a value below .Values, and an empty string for other nodes.
func (r *callReader) path(node parse.Node) string {
	if pipe, ok := node.(*parse.PipeNode); ok {
		return r.pathOf(pipe.Cmds)
	}
	if variable, ok := node.(*parse.VariableNode); ok && len(variable.Ident) == 1 {
		return r.paths[variable.Ident[0]]
	}
	path, isValue := strings.CutPrefix(Field(node), "Values.")
	if !isValue {
		return ""
	}
	return path
}

// looksUp reports whether a pipeline depends on the result of a lookup: directly or, if
// byInclude is true, by an included template.
func (r *callReader) looksUp(pipe *parse.PipeNode, byInclude bool) bool {
	found := false
	Walk(pipe, func(node parse.Node) bool {
		switch n := node.(type) {
		case *parse.IdentifierNode:
			found = found || n.Ident == "lookup"
		case *parse.VariableNode:
			found = found || r.lookedUp[n.Ident[0]]
		case *parse.CommandNode:
			if byInclude && len(n.Args) > 1 && Function(n.Args[0]) == "include" {
				name, ok := Literal(n.Args[1])
				found = found || ok && r.readers.Has(name)
			}
		}
		return !found
	})
	return found
}

func (r *callReader) add(name string, args []parse.Node, pos parse.Pos, around guard, variable string) {
	if around.byInclude && (name == "include" || name == "template") {
		around.lookedUp = false
	}
	r.All = append(r.All, Call{
		File: r.file, Template: r.template, Name: name, Args: args, Unless: around.unless,
		pos: pos, lookedUp: around.lookedUp, variable: variable,
	})
	if name == "include" && len(args) > 0 && args[0].Type() != parse.NodeString {
		r.computed = true
	}
}

// nameOf returns the name of a function, or the path of a field of the root
// object.
func nameOf(node parse.Node) string {
	if name := Function(node); name != "" {
		return name
	}
	return Field(node)
}
