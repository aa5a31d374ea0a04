package analysis

import (
	"regexp"
	"slices"
	"strings"
	"text/template/parse"

	"k8s.io/apimachinery/pkg/util/sets"
)

// includeGraph contains the named templates that a chart can execute. A library chart
// defines many templates that no other template includes. If these read .Capabilities, a
// change of .Capabilities must not upgrade releases.
type includeGraph struct {
	templates map[string]*namedTemplate
	// reached are the names of the templates that can be executed.
	reached sets.Set[string]
	// texts are the templates that default values and files of the chart include.
	texts *callees
}

// namedTemplate is a template with the templates that it includes. A chart can define a name
// several times.
type namedTemplate struct {
	trees []*parse.Tree
	*callees
}

// newIncludeGraph finds the templates that can be executed, starting from the files and from
// texts of the chart, which tpl can execute. If the name of an included template is
// computed, every template can be executed.
func newIncludeGraph(s Source) *includeGraph {
	g := &includeGraph{templates: map[string]*namedTemplate{}, reached: sets.Set[string]{}, texts: newCallees()}
	for _, text := range slices.Concat(s.Values, s.Files) {
		g.texts.text(text)
	}
	for _, file := range s.Templates {
		for _, tree := range file.Trees {
			template := g.templates[tree.Name]
			if template == nil {
				template = &namedTemplate{callees: newCallees()}
				g.templates[tree.Name] = template
			}
			template.trees = append(template.trees, tree)
			Walk(tree.Root, template.visit)
		}
	}
	unknown := g.texts.unknown
	var enter func(name string)
	enter = func(name string) {
		template := g.templates[name]
		if template == nil || g.reached.Has(name) {
			return
		}
		g.reached.Insert(name)
		unknown = unknown || template.unknown
		for included := range template.names {
			enter(included)
		}
	}
	for included := range g.texts.names {
		enter(included)
	}
	for _, file := range s.Templates {
		enter(file.Path)
	}
	if unknown {
		g.reached = sets.KeySet(g.templates)
	}
	return g
}

func (g *includeGraph) walk(name string, visit func(parse.Node) bool) {
	for _, tree := range g.templates[name].trees {
		Walk(tree.Root, visit)
	}
}

// addIncluding adds the templates that include a template in the set, directly or not.
func addIncluding(set sets.Set[string], includedBy map[string][]string) {
	for queue := set.UnsortedList(); len(queue) > 0; queue = queue[1:] {
		for _, name := range includedBy[queue[0]] {
			if !set.Has(name) {
				set.Insert(name)
				queue = append(queue, name)
			}
		}
	}
}

// callees are the named templates that a template or a text includes.
type callees struct {
	// names holds the included templates. The value is true if a text includes the
	// template, with unknown arguments.
	names map[string]bool
	// unknown is true if a name is computed, or if a text can execute any template.
	unknown bool
}

func newCallees() *callees { return &callees{names: map[string]bool{}} }

func (c *callees) includes(name string) bool {
	_, ok := c.names[name]
	return ok
}

func (c *callees) add(name string, inText bool) { c.names[name] = c.names[name] || inText }

func (c *callees) visit(node parse.Node) bool {
	switch n := node.(type) {
	case *parse.ActionNode:
		// {{ "{{" }} prints braces for other programs.
		text, ok := Literal(n.Pipe.Cmds[0].Args[0])
		return !ok || len(n.Pipe.Cmds)+len(n.Pipe.Decl) > 1 || text != "{{"
	case *parse.TemplateNode:
		c.add(n.Name, false)
	case *parse.StringNode:
		c.text(n.Text)
		c.unknown = c.unknown || spliced.MatchString(n.Text)
	case *parse.CommandNode:
		return c.command(n)
	}
	return true
}

func (c *callees) command(n *parse.CommandNode) bool {
	switch Function(n.Args[0]) {
	case "contains", "hasPrefix", "hasSuffix":
		// These functions only compare texts.
		for _, arg := range n.Args[1:] {
			if arg.Type() != parse.NodeString {
				Walk(arg, c.visit)
			}
		}
		return false
	case "include":
		if len(n.Args) == 1 {
			c.unknown = true
		} else if name, literal := Literal(n.Args[1]); literal {
			c.add(name, false)
		} else if !strings.Contains(n.Args[1].String(), ".Template.BasePath") {
			// With .Template.BasePath the name is the path of a file, for a checksum.
			c.unknown = true
		}
	}
	return true
}

// includeInText matches the inclusion of a template in a text, with its name unless the name
// is computed. The text itself can be quoted.
var includeInText = regexp.MustCompile("\\b(?:include|template|block)\\b(?:\\s*\\\\*[\"`]([^\"`\\\\%]*)\\\\*[\"`])?")

// spliced matches an action that printf completes.
var spliced = regexp.MustCompile(`\{\{[^}]*%[sv]`)

// text adds the templates that a text includes if tpl executes it. The text is not parsed,
// because the parser's stack would overflow on deeply nested texts of custom resources.
func (c *callees) text(text string) {
	actions := strings.Split(text, "{{")[1:]
	for at, action := range actions {
		end := strings.LastIndex(action, "}}")
		if end < 0 {
			end = len(action)
			// The chart can append to the last action.
			c.unknown = c.unknown || at == len(actions)-1
		}
		action = action[:end]
		c.unknown = c.unknown || strings.Contains(action, "Capabilities")
		for _, match := range includeInText.FindAllStringSubmatchIndex(action, -1) {
			if match[2] < 0 {
				c.unknown = true
				continue
			}
			c.add(action[match[2]:match[3]], true)
		}
	}
}
