package crd

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/chartwright/chartwright/internal/chart"
)

// texts holds the comment of a key in values.yaml, and those of the keys below it.
type texts struct {
	about string
	keys  map[string]*texts
}

// at returns the texts of a key, and adds the key if it is missing.
func (t *texts) at(name string) *texts {
	if t.keys == nil {
		t.keys = map[string]*texts{}
	}
	if t.keys[name] == nil {
		t.keys[name] = &texts{}
	}
	return t.keys[name]
}

// under adds the texts of another one for keys that have none.
func (t *texts) under(other *texts) {
	if t.about == "" {
		t.about = other.about
	}
	for name, inner := range other.keys {
		t.at(name).under(inner)
	}
}

// readTexts reads the comments in values.yaml of a chart and of its subcharts. The
// chart's comment on a subchart's value has precedence over the subchart's.
func readTexts(file chart.ValuesFile) *texts {
	t := &texts{}
	var doc yaml.Node
	if yaml.Unmarshal(file.Data, &doc) == nil && len(doc.Content) == 1 {
		r := &commentReader{lines: strings.Split(string(bytes.ReplaceAll(file.Data, []byte("\r\n"), []byte("\n"))), "\n")}
		named := r.named()
		r.mapping(doc.Content[0], t, 0)
		// A comment that names its key has precedence over one next to the key.
		named.under(t)
		t = named
	}
	for key, child := range file.Subcharts {
		t.at(key).under(readTexts(child))
	}
	return t
}

// commentReader finds comments by their position in the text, because the YAML library
// assigns comments to keys by rules of its own.
type commentReader struct{ lines []string }

// maxDepth limits the nesting, because aliases can be recursive.
const maxDepth = 30

func (r *commentReader) mapping(n *yaml.Node, t *texts, depth int) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.MappingNode || depth > maxDepth {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Tag == "!!merge" {
			merged := &texts{}
			r.mapping(value, merged, depth+1)
			t.under(merged)
			continue
		}
		inner := t.at(key.Value)
		if inner.about = r.above(key); inner.about == "" {
			inner.about = lineComment(key, value)
		}
		r.mapping(value, inner, depth+1)
	}
}

// above returns the text of the comment directly above a key, with the same
// indentation.
func (r *commentReader) above(key *yaml.Node) string {
	at, indent := key.Line-1, key.Column-1
	if at >= len(r.lines) || strings.TrimSpace(r.lines[at][:min(indent, len(r.lines[at]))]) != "" {
		// The key is inside braces, and the comment above belongs to another key.
		return ""
	}
	first := at
	for first > 0 {
		line := r.lines[first-1]
		if trimmed := strings.TrimLeft(line, " "); !strings.HasPrefix(trimmed, "#") || len(line)-len(trimmed) != indent {
			break
		}
		first--
	}
	if slices.ContainsFunc(r.lines[first:at], namedText.MatchString) {
		// The comment names its key, see named.
		return ""
	}
	return prose(r.lines[first:at])
}

// lineComment returns the text of the comment at the end of a key's line.
func lineComment(key, value *yaml.Node) string {
	for _, n := range []*yaml.Node{key, value} {
		if n.LineComment != "" {
			return prose([]string{n.LineComment})
		}
	}
	return ""
}

var (
	// param matches comments for bitnami's generator:
	// "## @param image.tag [default: latest] Tag of the image".
	param = regexp.MustCompile(`^\s*#+\s*@param\s+(\S+)\s+((?:\[[^\]]*\]\s*)*)(.*)$`)
	// namedText matches comments for old versions of helm-docs:
	// "# image.tag -- Tag of the image".
	namedText = regexp.MustCompile(`^\s*#+\s*([A-Za-z_][\w./-]*)\s+--\s+(.*)$`)
)

// named returns the texts of comments that name their keys, anywhere in the file.
func (r *commentReader) named() *texts {
	t := &texts{}
	for i, line := range r.lines {
		var path, about string
		if match := param.FindStringSubmatch(line); match != nil {
			path, about = match[1], match[3]
		} else if match := namedText.FindStringSubmatch(line); match != nil {
			path, about = match[1], strings.Join(append([]string{match[2]}, r.continued(i+1)...), " ")
		} else {
			continue
		}
		inner := t
		for key := range strings.SplitSeq(path, ".") {
			inner = inner.at(key)
		}
		inner.about = sized(strings.TrimSpace(about))
	}
	return t
}

// continued returns the following lines of a comment.
func (r *commentReader) continued(from int) []string {
	var more []string
	for _, line := range r.lines[from:] {
		text := strings.TrimSpace(line)
		if !strings.HasPrefix(text, "#") || namedText.MatchString(line) || strings.Contains(text, "# @") {
			break
		}
		more = append(more, strings.TrimSpace(strings.TrimLeft(text, "#")))
	}
	return more
}

// maxText is the maximum length of a description.
const maxText = 1000

// prose returns the prose in the lines of a comment, without commented-out values,
// marks for tools and separator lines.
func prose(lines []string) string {
	p := &proseReader{}
	for _, line := range marked(lines) {
		p.line(line)
	}
	text := strings.Join(p.kept, " ")
	if p.cut {
		// The text announces an example that was omitted.
		text = introduction.ReplaceAllString(text, "")
	}
	return sized(text)
}

// marked returns the lines without their #. If lines begin with --, the mark of helm-docs for
// descriptions, it returns only the lines from the last such line on.
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
	// typeMark matches the type in a comment for helm-docs, as in "(int) number of replicas".
	typeMark = regexp.MustCompile(`^\([a-zA-Z/]+\)\s+`)
	// example matches a line of YAML: a key in lower case or the name of an environment
	// variable, or a list item that begins with one of them.
	example = regexp.MustCompile(`^\s*(?:- )?(?:["']?[a-z0-9_][\w./-]*["']?|[A-Z0-9_]+_[A-Z0-9_]+):(?:\s|$)|^\s*- [{"']|^\s*[{}\[\]]+,?$`)
	// remark matches prose that looks like a key.
	remark = regexp.MustCompile(`^(?:note|warning|important|hint|tip|deprecated|caution|default|defaults):`)
	// introduction matches the end of a text that announces an example.
	introduction = regexp.MustCompile(`(?i)\s*\b(?:for example|for instance|examples?|e\.g\.?|ex|like this)\s*[:.]?$`)
)

// boilerplate holds comments that helm create writes above the first key.
var boilerplate = []string{"Default values for ", "This is a YAML-formatted file", "Declare variables to be passed into your templates", "Declare name/value pairs to be passed into your templates"}

type proseReader struct {
	kept []string
	// cut is true if the last line was omitted, and within inside an example, whose
	// indentation is depth.
	cut, within bool
	depth       int
	// fenced is true inside ```, and schema between two lines of @schema.
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

// sized truncates a text that is too long after a word.
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
