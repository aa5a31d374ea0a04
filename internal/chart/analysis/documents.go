package analysis

import (
	"regexp"
	"slices"
	"strings"
	"text/template/parse"
)

// HookLogPolicy is the annotation of hooks whose logs a chart requests.
const HookLogPolicy = "helm.sh/hook-output-log-policy"

// Document is one YAML document of a template, with the lines of all branches.
type Document struct {
	File File
	// Opaque are the expressions at the top level whose text is unknown.
	Opaque []Opaque
	// Logged is true if the document contains the annotation HookLogPolicy.
	Logged bool

	// kinds and versions are the lines with the keys kind and apiVersion at any depth,
	// and hooks the lines with the hook annotation.
	kinds, versions, hooks []entry
	// flow is true if the document is in flow style, with braces.
	flow bool
}

// Opaque is a line of a template whose text is unknown.
type Opaque struct {
	Text string
	File string
	Line int
}

// Object is an object in a document.
type Object struct {
	// APIVersion is empty if the document contains none. APIVersion and Kind can contain
	// Unknown.
	APIVersion, Kind string
	File             string
	Line             int
	// Plain is true if the object can be an object of the release, and Hook if it can be
	// a hook.
	Plain, Hook bool
}

// Objects returns the possible combinations of kinds and API versions in the document.
func (d *Document) Objects() []Object {
	var all []Object
	column := d.column()
	for _, kind := range d.kinds {
		if kind.column != column {
			continue
		}
		o := Object{Kind: kind.text, File: kind.file, Line: kind.line}
		o.Hook = slices.ContainsFunc(d.hooks, func(h entry) bool { return h.in.meets(kind.in) })
		o.Plain = !slices.ContainsFunc(d.hooks, func(h entry) bool { return h.in.holds(kind.in) })
		before := len(all)
		for _, version := range d.versions {
			if version.column == column && version.item == kind.item && version.in.meets(kind.in) {
				o.APIVersion = version.text
				all = append(all, o)
			}
		}
		if len(all) == before {
			all = append(all, o)
		}
	}
	return all
}

// column returns the indentation of the objects' keys: zero, except in the items of a List
// and in flow style.
func (d *Document) column() int {
	isList := slices.ContainsFunc(d.kinds, func(k entry) bool { return k.column == 0 && k.text == "List" })
	if !isList && !d.flow {
		return 0
	}
	least := 0
	for _, kind := range d.kinds {
		if kind.column > 0 && (least == 0 || kind.column < least) {
			least = kind.column
		}
	}
	return least
}

// entry is the value of one key of a document, and its position.
type entry struct {
	text, file string
	line       int
	// column is the indentation of the key.
	column int
	// item is the number of list items before it.
	item int
	in   branches
}

// branches are the branches of if, with and range that contain a line.
type branches []branch

// branch is one side of an if, with or range.
type branch struct {
	node parse.Node
	side int
}

// meets reports whether one render can contain both lines.
func (b branches) meets(other branches) bool {
	return !slices.ContainsFunc(b, func(one branch) bool {
		return slices.ContainsFunc(other, func(two branch) bool { return one.node == two.node && one.side != two.side })
	})
}

// holds reports whether each render with the other line contains this line, too.
func (b branches) holds(other branches) bool { return len(b.common(other)) == len(b) }

// common returns the branches that contain both lines.
func (b branches) common(other branches) branches {
	return slices.DeleteFunc(slices.Clone(b), func(one branch) bool { return !slices.Contains(other, one) })
}

func (b branches) and(node parse.Node, side int) branches {
	return append(slices.Clone(b), branch{node, side})
}

// Documents returns the documents of all files that Helm renders.
func (e *Evaluator) Documents() []*Document {
	var all []*Document
	for _, file := range e.files {
		for _, tree := range file.Trees {
			if file.Rendered(tree) {
				r := &documentReader{Evaluator: e, file: file, doc: &Document{File: file}, open: []partialLine{{}}}
				r.list(tree.Root, scope{file: file})
				r.endLine(nil)
				all = append(append(all, r.done...), r.doc)
			}
		}
	}
	return all
}

// documentReader reads the lines of one template, over all branches.
type documentReader struct {
	*Evaluator
	file File
	done []*Document
	doc  *Document
	// open are the possible beginnings of the current line.
	open []partialLine
	item int
}

// partialLine is the beginning of a line on one path through the branches.
type partialLine struct {
	text string
	// file and line are the position of the beginning.
	file File
	line int
	in   branches
}

// indented is a placeholder for an expression at the beginning of an indented line.
const indented = "\x01"

func (r *documentReader) list(list *parse.ListNode, at scope) {
	if list == nil {
		return
	}
	for _, node := range list.Nodes {
		switch n := node.(type) {
		case *parse.TextNode:
			r.text(string(n.Text), n.Pos, at)
		case *parse.ActionNode:
			if len(n.Pipe.Decl) == 0 {
				r.action(n.Pipe, at)
			}
		case *parse.TemplateNode:
			r.include(n.Name, n, at)
		default:
			if branch := BranchOf(node); branch != nil {
				r.branch(branch, node, at)
			}
		}
	}
}

// branch reads both sides, each with the current beginnings of the line.
func (r *documentReader) branch(n *parse.BranchNode, node parse.Node, at scope) {
	before := r.open
	side := func(list *parse.ListNode, at scope, side int) []partialLine {
		at.in = at.in.and(n, side)
		r.open = slices.Clone(before)
		for i := range r.open {
			r.open[i].in = r.open[i].in.and(n, side)
		}
		r.list(list, at)
		return r.open
	}
	r.open = append(side(n.List, r.into(node, at), 0), side(n.ElseList, at, 1)...)
	r.bound()
}

// bound merges equal beginnings, and drops beginnings above the limit.
func (r *documentReader) bound() {
	var kept []partialLine
	for _, open := range r.open {
		if at := slices.IndexFunc(kept, func(k partialLine) bool { return k.text == open.text }); at >= 0 {
			kept[at].in = kept[at].in.common(open.in)
		} else {
			kept = append(kept, open)
		}
	}
	r.open = kept[:min(len(kept), maxTexts)]
}

func (r *documentReader) text(text string, pos parse.Pos, at scope) {
	for i, piece := range strings.Split(text, "\n") {
		if i > 0 {
			r.endLine(at.in)
		}
		r.append([]string{piece}, at.file.Line(pos), at)
		pos += parse.Pos(len(piece) + 1)
	}
}

// blank reports whether the current line is empty.
func (r *documentReader) blank() bool {
	return !slices.ContainsFunc(r.open, func(open partialLine) bool { return strings.TrimSpace(open.text) != "" })
}

// action adds the output of an expression. It reads templates that are included on a line
// of their own like the text of the file.
func (r *documentReader) action(pipe *parse.PipeNode, at scope) {
	v := r.pipe(pipe, at)
	if v.newline {
		r.endLine(at.in)
	}
	if r.blank() && v.includes != nil {
		kinds := len(r.doc.kinds)
		for i, name := range v.includes {
			one := at
			one.indent += v.indent
			if len(v.includes) > 1 {
				one.in = at.in.and(pipe, i)
			}
			r.include(name, pipe, one)
		}
		if v.Complete || len(r.doc.kinds) != kinds || v.indent != 0 {
			return
		}
	} else if v.indent > 0 {
		v.Texts = known(indented)
	}
	r.print(v.Texts, pipe, at)
}

func (r *documentReader) include(name string, node parse.Node, at scope) {
	definition, ok := r.defines[name]
	if !ok || at.depth >= maxIncludes {
		r.print(Texts{}, node, at)
		return
	}
	at.file, at.dot, at.depth = definition.file, Texts{}, at.depth+1
	r.list(definition.tree.Root, at)
}

// print adds texts to the line.
func (r *documentReader) print(t Texts, node parse.Node, at scope) {
	r.append(t.All(), at.file.Line(node.Position()), at)
}

// append continues the line with each text.
func (r *documentReader) append(texts []string, number int, at scope) {
	open := make([]partialLine, 0, len(r.open)*len(texts))
	for _, begun := range r.open {
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
	r.open = open
	r.bound()
	r.divide()
}

// divider separates documents.
const divider = "---"

// divide begins a new document if the line begins with a divider in all branches. As in
// Helm, the rest of the line belongs to the new document.
func (r *documentReader) divide() {
	if slices.ContainsFunc(r.open, func(open partialLine) bool { return !strings.HasPrefix(open.text, divider) }) {
		return
	}
	r.next()
	for i := range r.open {
		r.open[i].text = strings.TrimLeft(strings.TrimPrefix(r.open[i].text, divider), " \t")
	}
}

func (r *documentReader) next() {
	r.done = append(r.done, r.doc)
	r.doc = &Document{File: r.file}
}

var (
	// entryLine matches a line with the key kind or apiVersion.
	entryLine = regexp.MustCompile(`^(\s*(?:- +)?)["']?(kind|apiVersion)["']?\s*:\s*(.*)$`)
	flowEntry = regexp.MustCompile(`([{,]\s*)["']?(kind|apiVersion)["']?\s*:\s*["']?([^,"'{}\s]+)`)
	hookLine  = regexp.MustCompile(`["']?helm\.sh/hook["']?\s*:`)
)

// endLine ends the line, and begins the next line in these branches.
func (r *documentReader) endLine(in branches) {
	for _, open := range r.open {
		r.line(open)
	}
	r.open = []partialLine{{in: in}}
}

func (r *documentReader) line(open partialLine) {
	text := strings.TrimRight(open.text, " \t\r")
	if rest, ok := strings.CutPrefix(text, divider); ok {
		r.next()
		text = strings.TrimLeft(rest, " \t")
	}
	switch {
	case strings.HasPrefix(strings.TrimSpace(text), "#"):
		return
	case strings.HasPrefix(text, Unknown) && !strings.Contains(text, ":"):
		r.doc.Opaque = append(r.doc.Opaque, Opaque{Text: open.file.source(open.line), File: open.file.Path, Line: open.line})
		return
	}
	if hookLine.MatchString(text) {
		r.doc.hooks = append(r.doc.hooks, entry{text: text, line: open.line, in: open.in})
	}
	r.doc.flow = r.doc.flow || strings.HasPrefix(text, "{")
	r.doc.Logged = r.doc.Logged || strings.Contains(text, HookLogPolicy)
	if strings.HasPrefix(strings.TrimSpace(text), "- ") {
		r.item++
	}
	for _, match := range entries(text) {
		one := entry{text: scalar(match[3]), file: open.file.Path, line: open.line, column: len(match[1]), item: r.item, in: open.in}
		if match[2] == "kind" {
			r.doc.kinds = append(r.doc.kinds, one)
		} else {
			r.doc.versions = append(r.doc.versions, one)
		}
	}
}

// entries returns the kind and apiVersion on a line. A line in flow style can contain both,
// and those of nested objects.
func entries(text string) [][]string {
	if !strings.HasPrefix(text, "{") {
		return entryLine.FindAllStringSubmatch(text, 1)
	}
	var found [][]string
	for _, match := range flowEntry.FindAllStringSubmatch(text, -1) {
		if !slices.ContainsFunc(found, func(m []string) bool { return m[2] == match[2] }) {
			found = append(found, match)
		}
	}
	return found
}

// scalar returns the text of a plain or quoted scalar.
func scalar(text string) string {
	text, _, _ = strings.Cut(text, " #")
	return strings.Trim(strings.TrimRight(strings.TrimSpace(text), ","), `"'`)
}

// source returns a line of the file, for messages.
func (f File) source(number int) string {
	lines := strings.Split(f.Text, "\n")
	if number < 1 || number > len(lines) {
		return f.Path
	}
	return strings.TrimSpace(lines[number-1])
}
