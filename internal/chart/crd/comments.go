package crd

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/chartwright/chartwright/internal/chart"
)

// texts is what the comments of a values.yaml say of a key, and of the keys
// within. A nil one says nothing.
type texts struct {
	about string
	keys  map[string]*texts
}

func (t *texts) text() string {
	if t == nil {
		return ""
	}
	return t.about
}

func (t *texts) key(name string) *texts {
	if t == nil {
		return nil
	}
	return t.keys[name]
}

// at returns the texts of a key, to be added to.
func (t *texts) at(name string) *texts {
	if t.keys == nil {
		t.keys = map[string]*texts{}
	}
	if t.keys[name] == nil {
		t.keys[name] = &texts{}
	}
	return t.keys[name]
}

// under adds what another says where this one says nothing.
func (t *texts) under(other *texts) {
	if t.about == "" {
		t.about = other.about
	}
	for name, inner := range other.keys {
		t.at(name).under(inner)
	}
}

// readTexts reads the comments of a chart's values.yaml and of those of its
// subcharts. A chart speaks of a subchart's values before the subchart itself.
func readTexts(file chart.ValuesFile) *texts {
	t := &texts{}
	var doc yaml.Node
	if yaml.Unmarshal(file.Data, &doc) == nil && len(doc.Content) == 1 {
		r := &commentReader{lines: strings.Split(string(bytes.ReplaceAll(file.Data, []byte("\r\n"), []byte("\n"))), "\n")}
		named := r.named()
		r.mapping(doc.Content[0], t, 0)
		// A comment that names its key is surer than one that stands near it.
		named.under(t)
		t = named
	}
	for key, child := range file.Subcharts {
		t.at(key).under(readTexts(child))
	}
	return t
}

// commentReader finds comments by where they stand in the text: which comment
// belongs to which key the YAML library tells by rules of its own.
type commentReader struct{ lines []string }

// maxDepth bounds the way through aliases, which may lead in a circle.
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
			inner.about = beside(key, value)
		}
		r.mapping(value, inner, depth+1)
	}
}

// above returns the text of the comment that stands right above a key, and no
// deeper than it.
func (r *commentReader) above(key *yaml.Node) string {
	at, indent := key.Line-1, key.Column-1
	if at >= len(r.lines) || strings.TrimSpace(r.lines[at][:min(indent, len(r.lines[at]))]) != "" {
		// Inside braces a comment above is of something else.
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
		// It names the key that it is about.
		return ""
	}
	return prose(r.lines[first:at])
}

// beside returns the text of the comment at the end of a key's line.
func beside(key, value *yaml.Node) string {
	for _, n := range []*yaml.Node{key, value} {
		if n.LineComment != "" {
			return prose([]string{n.LineComment})
		}
	}
	return ""
}

var (
	// bitnami's generator: ## @param image.tag [default: latest] Tag of the image
	param = regexp.MustCompile(`^\s*#+\s*@param\s+(\S+)\s+((?:\[[^\]]*\]\s*)*)(.*)$`)
	// helm-docs, of old: # image.tag -- Tag of the image
	namedText = regexp.MustCompile(`^\s*#+\s*([A-Za-z_][\w./-]*)\s+--\s+(.*)$`)
)

// named returns the texts of comments that name their keys, wherever they
// stand.
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

// continued returns the lines by which a comment goes on.
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
