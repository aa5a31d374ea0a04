package permissions

import (
	"regexp"
	"slices"
	"strings"

	"github.com/chartwright/chartwright/internal/chart/analysis"
)

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
func sourceOf(file analysis.File, number int) string {
	lines := strings.Split(file.Text, "\n")
	if number < 1 || number > len(lines) {
		return file.Path
	}
	return strings.TrimSpace(lines[number-1])
}
