package crd

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// maxText is the length up to which a comment is taken.
const maxText = 1000

// prose returns what the lines of a comment say to people. Values that are
// commented out, marks for tools and lines for the eye are left out.
func prose(lines []string) string {
	p := &proseReader{}
	for _, line := range marked(lines) {
		p.line(line)
	}
	text := strings.Join(p.kept, " ")
	if p.cut {
		// What introduced an example that is left out introduces nothing.
		text = introduction.ReplaceAllString(text, "")
	}
	return sized(text)
}

// marked returns the lines without their #; from the last one on that begins
// with --, by which helm-docs marks what is a description.
func marked(lines []string) []string {
	bare := make([]string, len(lines))
	for i, line := range lines {
		bare[i] = strings.TrimPrefix(strings.TrimLeft(strings.TrimSpace(line), "#"), " ")
	}
	for i, line := range slices.Backward(bare) {
		if after, ok := strings.CutPrefix(line, "--"); ok && (after == "" || after[0] == ' ') {
			bare = bare[i:]
			bare[0] = typeMark.ReplaceAllString(strings.TrimSpace(after), "")
			break
		}
	}
	return bare
}

var (
	// typeMark is a type that helm-docs is told: (int) how many
	typeMark = regexp.MustCompile(`^\([a-zA-Z/]+\)\s+`)
	// example is a line of YAML: a key in small letters or of an environment
	// variable, or an item that begins with one.
	example = regexp.MustCompile(`^\s*(?:- )?(?:["']?[a-z0-9_][\w./-]*["']?|[A-Z0-9_]+_[A-Z0-9_]+):(?:\s|$)|^\s*- [{"']|^\s*[{}\[\]]+,?$`)
	// remark is a word of prose that looks like a key.
	remark = regexp.MustCompile(`^(?:note|warning|important|hint|tip|deprecated|caution|default|defaults):`)
	// introduction is the end of a text that announces an example.
	introduction = regexp.MustCompile(`(?i)\s*\b(?:for example|for instance|examples?|e\.g\.?|ex|like this)\s*[:.]?$`)
)

// boilerplate is what helm create puts above the first key.
var boilerplate = []string{"Default values for ", "This is a YAML-formatted file", "Declare variables to be passed into your templates", "Declare name/value pairs to be passed into your templates"}

type proseReader struct {
	kept []string
	// cut tells that the last line was left out, and how deep an example goes.
	cut, within bool
	depth       int
	// fenced is inside ``` or between two lines of @schema.
	fenced, schema bool
}

func (p *proseReader) line(line string) {
	text := strings.TrimSpace(line)
	indent := len(line) - len(strings.TrimLeft(line, " "))
	switch {
	case strings.HasPrefix(text, "```"):
		p.fenced, p.cut = !p.fenced, true
	case text == "@schema":
		p.schema = !p.schema
	case p.fenced || p.schema, strings.HasPrefix(text, "@"):
	case !strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }):
		p.within = p.within && text != ""
	case slices.ContainsFunc(boilerplate, func(known string) bool { return strings.HasPrefix(text, known) }):
	case p.within && indent > p.depth:
	case example.MatchString(line) && !remark.MatchString(text):
		if !p.within || indent < p.depth {
			p.depth = indent
		}
		p.cut, p.within = true, true
	default:
		p.kept = append(p.kept, text)
		p.cut, p.within = false, false
	}
}

// sized cuts a text that is too long at a word.
func sized(text string) string {
	if len(text) <= maxText {
		return text
	}
	cut := strings.LastIndex(text[:maxText], " ")
	if cut < 0 {
		return ""
	}
	return text[:cut] + " …"
}
