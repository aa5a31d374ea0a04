package helm

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"text/template/parse"

	"helm.sh/helm/v3/pkg/chart"

	"github.com/chartwright/chartwright/internal/chart/analysis"
)

// reach knows which named templates a chart can execute. A library chart brings
// many that no other template includes; what these read of .Capabilities must
// not upgrade a release.
type reach struct {
	// trees and calls are those of each template, by its name. Charts may define
	// a name more than once.
	trees map[string][]*parse.Tree
	calls map[string]*callees
	// reached are the names of the templates that can be executed.
	reached map[string]bool
	// texts are the calls in default values and in other files of the chart.
	texts *callees
}

// newReach finds the templates that can be executed, from the bodies of the
// files and from texts of the chart, which tpl may execute. If a name of a
// template is computed, every template can be.
func newReach(c *chart.Chart, files []analysis.File) *reach {
	r := &reach{trees: map[string][]*parse.Tree{}, calls: map[string]*callees{}, reached: map[string]bool{}, texts: newCallees()}
	r.texts.ofChart(c)
	for _, file := range files {
		for _, tree := range file.Trees {
			r.trees[tree.Name] = append(r.trees[tree.Name], tree)
			if r.calls[tree.Name] == nil {
				r.calls[tree.Name] = newCallees()
			}
			analysis.Walk(tree.Root, r.calls[tree.Name].visit)
		}
	}
	unknown := r.texts.unknown
	var enter func(name string)
	enter = func(name string) {
		calls := r.calls[name]
		if calls == nil || r.reached[name] {
			return
		}
		r.reached[name] = true
		unknown = unknown || calls.unknown
		for called := range calls.names {
			enter(called)
		}
	}
	for called := range r.texts.names {
		enter(called)
	}
	for _, file := range files {
		enter(file.Path)
	}
	if unknown {
		for name := range r.trees {
			r.reached[name] = true
		}
	}
	return r
}

// read returns what the templates that can be executed read of .Capabilities.
func (r *reach) read(into Features) Features {
	names := slices.Sorted(maps.Keys(r.reached))
	known := map[parse.Node]bool{}
	for _, name := range names {
		for _, question := range r.parameters(name) {
			if apis, all := r.arguments(name, question.key); all {
				known[question.command] = true
				into.APIs = append(into.APIs, apis...)
			}
		}
	}
	for _, name := range names {
		for _, tree := range r.trees[name] {
			analysis.Walk(tree.Root, func(node parse.Node) bool { return !known[node] && into.visit(node) })
		}
	}
	return into
}

// readers returns the names of the templates that read .Capabilities, themselves
// or by one that they call.
func (r *reach) readers() map[string]bool {
	readers := map[string]bool{}
	for name, trees := range r.trees {
		var f Features
		for _, tree := range trees {
			analysis.Walk(tree.Root, f.visit)
		}
		if f.Capabilities() || r.calls[name].unknown {
			readers[name] = true
		}
	}
	for grows := true; grows; {
		grows = false
		for name, calls := range r.calls {
			if !readers[name] && calls.any(readers) {
				readers[name], grows = true, true
			}
		}
	}
	return readers
}

// callees are the named templates that a template or a text includes.
type callees struct {
	names map[string]bool
	// quoted are those of the names that stand in a text, whose arguments are
	// not read.
	quoted map[string]bool
	// unknown: a name is computed, or a text may execute anything.
	unknown bool
}

func newCallees() *callees { return &callees{names: map[string]bool{}, quoted: map[string]bool{}} }

// any reports whether one of some templates is called.
func (c *callees) any(names map[string]bool) bool {
	for name := range c.names {
		if names[name] {
			return true
		}
	}
	return false
}

func (c *callees) visit(node parse.Node) bool {
	switch n := node.(type) {
	case *parse.ActionNode:
		// {{ "{{" }} writes braces for other programs.
		literal, ok := n.Pipe.Cmds[0].Args[0].(*parse.StringNode)
		return !ok || len(n.Pipe.Cmds)+len(n.Pipe.Decl) > 1 || literal.Text != "{{"
	case *parse.TemplateNode:
		c.names[n.Name] = true
	case *parse.StringNode:
		c.text(n.Text)
		c.unknown = c.unknown || spliced.MatchString(n.Text)
	case *parse.CommandNode:
		return c.command(n)
	}
	return true
}

func (c *callees) command(n *parse.CommandNode) bool {
	function, ok := n.Args[0].(*parse.IdentifierNode)
	switch {
	case !ok:
	case slices.Contains([]string{"contains", "hasPrefix", "hasSuffix"}, function.Ident):
		// These only compare with a text.
		for _, arg := range n.Args[1:] {
			if arg.Type() != parse.NodeString {
				analysis.Walk(arg, c.visit)
			}
		}
		return false
	case function.Ident != "include":
	case len(n.Args) == 1:
		c.unknown = true
	default:
		if name, literal := n.Args[1].(*parse.StringNode); literal {
			c.names[name.Text] = true
		} else if !strings.Contains(n.Args[1].String(), ".Template.BasePath") {
			// The path of a file, for a checksum, is not the name of a helper.
			c.unknown = true
		}
	}
	return true
}

// call finds where a text includes a template, and its name unless that is
// computed. The text may be quoted itself.
var call = regexp.MustCompile("\\b(?:include|template|block)\\b(?:\\s*\\\\*[\"`]([^\"`\\\\%]*)\\\\*[\"`])?")

// spliced finds an action that printf completes.
var spliced = regexp.MustCompile(`\{\{[^}]*%[sv]`)

// text adds what a text calls if tpl executes it. It is not parsed: those of
// custom resources may be nested so deeply that the parser's stack overflows.
func (c *callees) text(text string) {
	actions := strings.Split(text, "{{")
	if len(actions) == 1 {
		return
	}
	for at, action := range actions[1:] {
		end := strings.LastIndex(action, "}}")
		if end < 0 {
			end = len(action)
			// The chart may append to the last one.
			c.unknown = c.unknown || at == len(actions)-2
		}
		action = action[:end]
		c.unknown = c.unknown || strings.Contains(action, "Capabilities")
		for _, match := range call.FindAllStringSubmatchIndex(action, -1) {
			if match[2] < 0 {
				c.unknown = true
				continue
			}
			name := action[match[2]:match[3]]
			c.names[name], c.quoted[name] = true, true
		}
	}
}

// eachText visits the texts in a value, of which charts give tpl any part as YAML.
func eachText(value any, visit func(string)) {
	switch v := value.(type) {
	case string:
		visit(v)
	case []any:
		for _, item := range v {
			eachText(item, visit)
		}
	case map[string]any:
		for key, item := range v {
			visit(key)
			eachText(item, visit)
		}
	}
}

// ofChart adds the calls in the default values and in the files that templates
// read by .Files.
func (c *callees) ofChart(of *chart.Chart) {
	eachText(of.Values, c.text)
	for _, file := range of.Files {
		if !unread(file.Name) {
			c.text(string(file.Data))
		}
	}
	for _, child := range of.Dependencies() {
		c.ofChart(child)
	}
}
