package permissions

import (
	"slices"
	"strings"
	"text/template/parse"

	"github.com/chartwright/chartwright/internal/chart/analysis"
)

// partial is the beginning of a line, as one way through the branches gives it.
type partial struct {
	text string
	// file and line are where it begins.
	file analysis.File
	line int
	in   branch
}

// page is what the lines of one template go onto.
type page struct {
	reader *reader
	file   analysis.File
	done   []*document
	doc    *document
	// open are the beginnings of the line that is not complete.
	open []partial
	item int
}

// documents returns the documents of a template.
func (r *reader) documents(file analysis.File, tree *parse.Tree) []*document {
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
