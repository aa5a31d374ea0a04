package rbac

import (
	"regexp"
	"slices"
	"strings"
	"text/template/parse"

	"github.com/chartwright/chartwright/internal/helm"
	"github.com/chartwright/chartwright/internal/templates"
)

// Bounds that keep the scan of a chart short, whatever its templates do.
const (
	// maxTexts is how many texts an expression, or the beginning of a line, may
	// be followed in; with more it counts as unknown.
	maxTexts = 32
	// maxIncludes is how deep includes are followed.
	maxIncludes = 10
)

// reader reads templates through all branches at once.
type reader struct {
	defines map[string]define
	// values are the chart's defaults, and enums what its schema lets a value
	// be.
	values map[string]any
	enums  leaves
	// variables holds, by file and name, what is ever assigned to a variable.
	variables map[string]texts
}

// define is a named template.
type define struct {
	file templates.File
	tree *parse.Tree
}

func newReader(chart *helm.Chart) (*reader, error) {
	r := &reader{defines: map[string]define{}, variables: map[string]texts{}}
	var err error
	if r.values, err = chart.Values(); err != nil {
		return nil, err
	}
	if err := r.enums.ofEnums(chart.Schema()); err != nil {
		return nil, err
	}
	for _, file := range chart.Templates() {
		for _, tree := range file.Trees {
			if _, known := r.defines[tree.Name]; !known && tree.Name != file.Path {
				r.defines[tree.Name] = define{file, tree}
			}
		}
	}
	// A variable may be assigned another: twice is enough for two steps.
	for range 2 {
		for _, file := range chart.Templates() {
			r.assignments(file)
		}
	}
	return r, nil
}

// assignments notes what is assigned to the variables of a file.
func (r *reader) assignments(file templates.File) {
	ranges := map[*parse.PipeNode]bool{}
	file.Walk(func(node parse.Node) bool {
		switch n := node.(type) {
		case *parse.PipeNode:
			if len(n.Decl) == 1 && !ranges[n] {
				r.assign(file, n.Decl[0], r.evaluate(n, place{file: file}).texts)
			}
		case *parse.RangeNode:
			ranges[n.Pipe] = true
			if decl := n.Pipe.Decl; len(decl) > 0 {
				r.assign(file, decl[len(decl)-1], r.evaluate(n.Pipe, place{file: file}).items)
			}
		}
		return true
	})
}

func (r *reader) assign(file templates.File, variable *parse.VariableNode, to texts) {
	key := file.Path + variable.Ident[0]
	r.variables[key] = r.variables[key].or(to)
}

// place is where the reader is.
type place struct {
	file templates.File
	in   branch
	// dot are the texts that the dot can be, in a range over some.
	dot texts
	// indent is how far in what is included stands.
	indent int
	// depth counts the includes that lead here.
	depth int
}

// partial is the beginning of a line, as one way through the branches gives it.
type partial struct {
	text string
	// file and line are where it begins.
	file templates.File
	line int
	in   branch
}

// page is what the lines of one template go onto.
type page struct {
	reader *reader
	file   templates.File
	done   []*document
	doc    *document
	// open are the beginnings of the line that is not complete.
	open []partial
	item int
}

// documents returns the documents of a template.
func (r *reader) documents(file templates.File, tree *parse.Tree) []*document {
	p := &page{reader: r, file: file, doc: &document{file: file}, open: []partial{{}}}
	p.list(tree.Root, place{file: file})
	p.flush()
	return append(p.done, p.doc)
}

func (p *page) list(list *parse.ListNode, at place) {
	if list == nil {
		return
	}
	for _, node := range list.Nodes {
		p.node(node, at)
	}
}

func (p *page) node(node parse.Node, at place) {
	switch n := node.(type) {
	case *parse.TextNode:
		p.text(string(n.Text), n.Pos, at)
	case *parse.ActionNode:
		if len(n.Pipe.Decl) == 0 {
			p.action(n.Pipe, at)
		}
	case *parse.TemplateNode:
		p.included(n.Name, n, at)
	case *parse.IfNode:
		p.branches(&n.BranchNode, at, at)
	case *parse.WithNode:
		inside := at
		inside.dot = p.reader.evaluate(n.Pipe, at).texts
		p.branches(&n.BranchNode, inside, at)
	case *parse.RangeNode:
		inside := at
		inside.dot = p.reader.evaluate(n.Pipe, at).items
		p.branches(&n.BranchNode, inside, at)
	}
}

// branches reads both sides, each from where the line was when they began.
func (p *page) branches(n *parse.BranchNode, inside, at place) {
	before := p.open
	side := func(list *parse.ListNode, at place, arm int) []partial {
		at.in = at.in.and(n, arm)
		p.open = nil
		for _, open := range before {
			open.in = open.in.and(n, arm)
			p.open = append(p.open, open)
		}
		p.list(list, at)
		return p.open
	}
	p.open = append(side(n.List, inside, 0), side(n.ElseList, at, 1)...)
	p.few()
}

// few drops beginnings that say the same, and all where they are too many.
func (p *page) few() {
	var kept []partial
	for _, open := range p.open {
		at := slices.IndexFunc(kept, func(k partial) bool { return k.text == open.text })
		if at < 0 {
			kept = append(kept, open)
			continue
		}
		kept[at].in = slices.DeleteFunc(slices.Clone(kept[at].in), func(a arm) bool { return !slices.Contains(open.in, a) })
	}
	p.open = kept[:min(len(kept), maxTexts)]
}

func (p *page) text(text string, pos parse.Pos, at place) {
	for i, piece := range strings.Split(text, "\n") {
		if i > 0 {
			p.flush()
			p.open = []partial{{in: at.in}}
		}
		p.append([]string{piece}, at.file.Line(pos), at)
		pos += parse.Pos(len(piece) + 1)
	}
}

// blank tells whether nothing stands on the line yet.
func (p *page) blank() bool {
	return !slices.ContainsFunc(p.open, func(open partial) bool { return strings.TrimSpace(open.text) != "" })
}

// action adds what an expression prints.
func (p *page) action(pipe *parse.PipeNode, at place) {
	v := p.reader.evaluate(pipe, at)
	if v.newline {
		p.flush()
		p.open = []partial{{in: at.in}}
	}
	if p.blank() && v.includes != nil {
		before := *p.doc
		p.whole(v, pipe, at)
		if !v.complete && len(p.doc.kinds) == len(before.kinds) && v.indent == 0 {
			p.print(v.texts, pipe, at)
		}
		return
	}
	if v.indent > 0 {
		// It begins a line of its own, and is not the first thing in one.
		v.texts = texts{list: []string{inner}, complete: true}
	}
	p.print(v.texts, pipe, at)
}

// print adds texts to the line.
func (p *page) print(t texts, node parse.Node, at place) {
	p.append(t.all(), at.file.Line(node.Position()), at)
}

// append goes on with the line, by each of the texts.
func (p *page) append(texts []string, number int, at place) {
	open := make([]partial, 0, len(p.open)*len(texts))
	for _, begun := range p.open {
		for _, text := range texts {
			one := begun
			if begun.text == "" && text != "" {
				one.file, one.line = at.file, number
				text = strings.Repeat(" ", at.indent) + text
			}
			one.text += text
			open = append(open, one)
		}
	}
	p.open = open
	p.few()
	p.divide()
}

// divide begins a new document where a line begins so in all branches. What
// stands beside belongs to the new document, as Helm splits them.
func (p *page) divide() {
	for _, open := range p.open {
		if !strings.HasPrefix(open.text, divider) {
			return
		}
	}
	p.next()
	for i := range p.open {
		p.open[i].text = strings.TrimLeft(strings.TrimPrefix(p.open[i].text, divider), " \t")
	}
}

// divider is what documents begin with.
const divider = "---"

func (p *page) next() {
	p.done = append(p.done, p.doc)
	p.doc = &document{file: p.file}
}

// whole reads templates that are included on a line of their own, as if they
// stood there.
func (p *page) whole(v value, node parse.Node, at place) {
	at.indent += v.indent
	for i, name := range v.includes {
		one := at
		if len(v.includes) > 1 {
			one.in = at.in.and(node, i)
		}
		p.included(name, node, one)
	}
}

func (p *page) included(name string, node parse.Node, at place) {
	definition, ok := p.reader.defines[name]
	if !ok || at.depth >= maxIncludes {
		p.print(texts{}, node, at)
		return
	}
	at.file, at.dot, at.depth = definition.file, texts{}, at.depth+1
	p.list(definition.tree.Root, at)
}

// entryLine is a line that tells what an object is.
var (
	entryLine = regexp.MustCompile(`^(\s*(?:- +)?)["']?(kind|apiVersion)["']?\s*:\s*(.*)$`)
	flowEntry = regexp.MustCompile(`([{,]\s*)["']?(kind|apiVersion)["']?\s*:\s*["']?([^,"'{}\s]+)`)
	hookLine  = regexp.MustCompile(`["']?helm\.sh/hook["']?\s*:`)
)

// flush ends a line.
func (p *page) flush() {
	for _, open := range p.open {
		p.line(open)
	}
}

func (p *page) line(open partial) {
	text := strings.TrimRight(open.text, " \t\r")
	if rest, ok := strings.CutPrefix(text, divider); ok {
		p.next()
		text = strings.TrimLeft(rest, " \t")
	}
	switch {
	case strings.HasPrefix(strings.TrimSpace(text), "#"):
		return
	case strings.HasPrefix(text, unknown) && !strings.Contains(text, ":"):
		p.doc.opaque = append(p.doc.opaque, opaque{text: sourceOf(open.file, open.line), file: open.file.Path, line: open.line})
		return
	}
	if hookLine.MatchString(text) {
		p.doc.hooks = append(p.doc.hooks, line{text: text, line: open.line, in: open.in})
	}
	if strings.HasPrefix(text, "{") {
		p.doc.flow = true
	}
	p.doc.logged = p.doc.logged || strings.Contains(text, logPolicy)
	if strings.HasPrefix(strings.TrimSpace(text), "- ") {
		p.item++
	}
	for _, match := range entries(text) {
		l := line{text: scalar(match[3]), file: open.file.Path, line: open.line, column: len(match[1]), item: p.item, in: open.in}
		if match[2] == "kind" {
			p.doc.kinds = append(p.doc.kinds, l)
		} else {
			p.doc.versions = append(p.doc.versions, l)
		}
	}
}

// entries finds what a line tells of an object; one in braces may tell it all,
// and of objects inside.
func entries(text string) [][]string {
	if !strings.HasPrefix(text, "{") {
		return entryLine.FindAllStringSubmatch(text, 1)
	}
	var found [][]string
	for _, match := range flowEntry.FindAllStringSubmatch(text, -1) {
		known := func(m []string) bool { return m[2] == match[2] }
		if !slices.ContainsFunc(found, known) {
			found = append(found, match)
		}
	}
	return found
}

// scalar reads a plain or quoted value.
func scalar(text string) string {
	text, _, _ = strings.Cut(text, " #")
	return strings.Trim(strings.TrimRight(strings.TrimSpace(text), ","), `"'`)
}

// sourceOf returns the line of a template, for messages.
func sourceOf(file templates.File, number int) string {
	lines := strings.Split(file.Text, "\n")
	if number < 1 || number > len(lines) {
		return file.Path
	}
	return strings.TrimSpace(lines[number-1])
}
