package analysis

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/template/parse"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Limits of the evaluation of a chart.
const (
	// maxTexts is the maximum number of texts of an expression or of the beginning of a
	// line. An expression with more texts is unknown.
	maxTexts = 32
	// maxIncludes is the maximum depth of includes.
	maxIncludes = 10
)

// Evaluator computes the texts that expressions can print, over all branches.
type Evaluator struct {
	files []File
	// defines are the named templates. If a name is defined twice, it is the first one.
	defines map[string]define
	// defaults are the chart's default values, and enum returns the enum in the chart's
	// schema at a path.
	defaults map[string]any
	enum     func(path []string) (values []any, ok bool)
	// variables holds all texts that are assigned to a variable, by file and name.
	variables map[string]Texts
}

// define is a named template.
type define struct {
	file File
	tree *parse.Tree
}

// NewEvaluator returns an evaluator of a chart's templates.
func NewEvaluator(files []File, defaults map[string]any, enum func(path []string) (values []any, ok bool)) *Evaluator {
	e := &Evaluator{files: files, defines: map[string]define{}, defaults: defaults, enum: enum, variables: map[string]Texts{}}
	for _, file := range files {
		for _, tree := range file.Trees {
			if _, known := e.defines[tree.Name]; !known && tree.Name != file.Path {
				e.defines[tree.Name] = define{file, tree}
			}
		}
	}
	// Two passes resolve variables that are assigned from other variables.
	for range 2 {
		for _, file := range files {
			e.assignments(file)
		}
	}
	return e
}

// Texts returns the texts of an argument of a call.
func (e *Evaluator) Texts(call Call, arg int) Texts {
	if arg >= len(call.Args) {
		return Texts{}
	}
	return e.operand(call.Args[arg], scope{file: call.File}).Texts
}

// scope is the context of an expression.
type scope struct {
	file File
	in   branches
	// dot are the texts of the dot in a with or range.
	dot Texts
	// indent is the indentation of the included text.
	indent int
	// depth is the number of nested includes.
	depth int
}

// into returns the scope of the first branch of an if, with or range. The scope of
// the else is at.
func (e *Evaluator) into(node parse.Node, at scope) scope {
	inner := at
	switch n := node.(type) {
	case *parse.WithNode:
		inner.dot = e.pipe(n.Pipe, at).Texts
	case *parse.RangeNode:
		inner.dot = e.pipe(n.Pipe, at).items
	}
	return inner
}

// assignments collects the texts that are assigned to the variables of a file.
func (e *Evaluator) assignments(file File) {
	at := scope{file: file}
	ranges := map[*parse.PipeNode]bool{}
	assign := func(pipe *parse.PipeNode, to Texts) {
		key := file.Path + pipe.Decl[len(pipe.Decl)-1].Ident[0]
		e.variables[key] = e.variables[key].or(to)
	}
	file.Walk(func(node parse.Node) bool {
		switch n := node.(type) {
		case *parse.PipeNode:
			if len(n.Decl) == 1 && !ranges[n] {
				assign(n, e.pipe(n, at).Texts)
			}
		case *parse.RangeNode:
			ranges[n.Pipe] = true
			if len(n.Pipe.Decl) > 0 {
				assign(n.Pipe, e.pipe(n.Pipe, at).items)
			}
		}
		return true
	})
}

// value is the result of an expression.
type value struct {
	Texts
	// items are the items of a list.
	items Texts
	// includes are the templates whose output is printed, with an indentation, and on a
	// new line if newline is true.
	includes []string
	indent   int
	newline  bool
}

// pipe returns the value of a pipeline.
func (e *Evaluator) pipe(pipe *parse.PipeNode, at scope) value {
	var v value
	if pipe == nil || at.depth > maxIncludes {
		return v
	}
	for i, command := range pipe.Cmds {
		var piped []value
		if i > 0 {
			piped = []value{v}
		}
		v = e.command(command, piped, at)
	}
	return v
}

func (e *Evaluator) command(command *parse.CommandNode, piped []value, at scope) value {
	name := Function(command.Args[0])
	switch {
	case name == "" && len(command.Args) > 1:
		return value{}
	case name == "":
		return e.operand(command.Args[0], at)
	}
	var args []value
	for _, arg := range command.Args[1:] {
		args = append(args, e.operand(arg, at))
	}
	return e.call(name, append(args, piped...), at)
}

// operand returns the value of one argument.
func (e *Evaluator) operand(node parse.Node, at scope) value {
	switch n := node.(type) {
	case *parse.StringNode:
		return value{Texts: known(n.Text)}
	case *parse.NumberNode:
		return value{Texts: known(n.Text)}
	case *parse.BoolNode:
		return value{Texts: known(strconv.FormatBool(n.True))}
	case *parse.PipeNode:
		return e.pipe(n, at)
	case *parse.DotNode:
		return value{Texts: at.dot}
	case *parse.FieldNode:
		return value{Texts: e.field(n.Ident, at)}
	case *parse.VariableNode:
		if n.Ident[0] == "$" {
			return value{Texts: e.field(n.Ident[1:], at)}
		}
		if len(n.Ident) == 1 {
			return value{Texts: e.variables[at.file.Path+n.Ident[0]]}
		}
	case *parse.IdentifierNode:
		return e.call(n.Ident, nil, at)
	}
	return value{}
}

// field returns the texts of a value: the enum in the schema, or the default and any other
// text.
func (e *Evaluator) field(names []string, at scope) Texts {
	if len(names) < 2 || names[0] != "Values" {
		return Texts{}
	}
	path := append(at.file.Subcharts(), names[1:]...)
	if values, ok := e.enum(path); ok {
		t := known()
		for _, v := range values {
			t.List = append(t.List, fmt.Sprint(v))
		}
		return t
	}
	if text, _, _ := unstructured.NestedString(e.defaults, path...); text != "" {
		return Texts{List: []string{text}}
	}
	return Texts{}
}

// include returns the output of a named template. If its name is computed, it can be each
// template whose name is among the arguments.
func (e *Evaluator) include(args []value, at scope) value {
	var v value
	if len(args) == 0 {
		return v
	}
	for _, arg := range args {
		for _, text := range slices.Concat(arg.List, arg.items.List) {
			if _, ok := e.defines[text]; ok && !slices.Contains(v.includes, text) {
				v.includes = append(v.includes, text)
			}
		}
	}
	printed := known()
	for _, name := range args[0].List {
		definition, ok := e.defines[name]
		if !ok {
			return v
		}
		inside := scope{file: definition.file, depth: at.depth + 1}
		printed = printed.or(e.output(definition.tree.Root, inside).each(strings.TrimSpace))
	}
	if args[0].Complete && len(printed.List) > 0 {
		v.Texts = printed
	}
	return v
}

// output returns the output of a part of a template.
func (e *Evaluator) output(list *parse.ListNode, at scope) Texts {
	all := known("")
	if list == nil || at.depth > maxIncludes {
		return all
	}
	for _, node := range list.Nodes {
		switch n := node.(type) {
		case *parse.TextNode:
			all = all.then(known(string(n.Text)))
		case *parse.ActionNode:
			if len(n.Pipe.Decl) == 0 {
				all = all.then(e.pipe(n.Pipe, at).Texts)
			}
		case *parse.TemplateNode:
			all = all.then(e.include([]value{{Texts: known(n.Name)}}, at).Texts)
		default:
			if branch := BranchOf(node); branch != nil {
				all = all.then(e.output(branch.List, e.into(node, at)).or(e.output(branch.ElseList, at)))
			}
		}
	}
	return all
}
