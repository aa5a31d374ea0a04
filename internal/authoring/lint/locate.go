package lint

import (
	"regexp"
	"slices"
	"strings"

	"github.com/chartwright/chartwright/internal/chart"
)

// generic replaces the release name and namespace of the trials by placeholders.
func generic(text string) string {
	return strings.NewReplacer(first.name, "<release>", first.namespace, "<namespace>").Replace(text)
}

// objectText is an object in the source of a template.
type objectText struct {
	// line is the line of its name or, if that is not found, of its kind.
	line int
	// name is the source of the name, usually a template expression.
	name string
}

// locate returns the line of a template that sets the name of a rendered object. n
// is the index of the object among the objects of its kind from this template.
func (c *check) locate(o chart.RenderedObject, n int) location {
	file, ok := c.file(o.Source)
	if !ok {
		return location{o.Source, 0}
	}
	documents := objectTexts(file.Text, o.GetKind())
	if len(documents) == 0 {
		return location{o.Source, 1}
	}
	if literal := slices.IndexFunc(documents, func(d objectText) bool { return strings.Trim(d.name, `"'`) == o.GetName() }); literal >= 0 {
		n = literal
	}
	return location{o.Source, documents[min(n, len(documents)-1)].line}
}

var (
	kindLine     = regexp.MustCompile(`^(\s*)(?:-\s+)?kind:\s*["']?([A-Za-z0-9]+)["']?\s*(?:#.*)?$`)
	metadataLine = regexp.MustCompile(`^\s*(?:-\s+)?metadata:(.*)$`)
	nameLine     = regexp.MustCompile(`^\s*name:\s*(.*?)\s*$`)
	nameInFlow   = regexp.MustCompile(`\bname:\s*("[^"]*"|'[^']*'|[^,}]*|\{\{.*?\}\})\s*[,}]`)
)

// objectTexts returns the objects of a kind in the source of a template: those
// without indentation or, failing that, those with indentation, as in a list
// or a define.
func objectTexts(text, kind string) []objectText {
	lines := strings.Split(text, "\n")
	var edge, indented []objectText
	for i, line := range lines {
		switch match := kindLine.FindStringSubmatch(line); {
		case len(match) < 3 || match[2] != kind:
		case match[1] == "":
			edge = append(edge, describe(lines, i))
		default:
			indented = append(indented, describe(lines, i))
		}
	}
	if len(edge) > 0 {
		return edge
	}
	return indented
}

// describe finds the name of the object whose kind is on the line with an index.
func describe(lines []string, kind int) objectText {
	start, end := kind, kind+1
	for start > 0 && !strings.HasPrefix(lines[start], "---") {
		start--
	}
	for end < len(lines) && !strings.HasPrefix(lines[end], "---") && kindLine.FindStringSubmatch(lines[end]) == nil {
		end++
	}
	// Usually, metadata follows the kind.
	for _, part := range [][2]int{{kind, min(end+1, len(lines))}, {start, kind}} {
		if found, ok := nameIn(lines, part[0], part[1]); ok {
			return found
		}
	}
	return objectText{line: kind + 1}
}

// nameIn finds metadata.name between two lines.
func nameIn(lines []string, from, to int) (objectText, bool) {
	within := false
	for i := from; i < to; i++ {
		if match := metadataLine.FindStringSubmatch(lines[i]); match != nil {
			if flow := nameInFlow.FindStringSubmatch(match[1]); flow != nil {
				return objectText{line: i + 1, name: flow[1]}, true
			}
			within = true
			continue
		}
		if match := nameLine.FindStringSubmatch(lines[i]); match != nil && within {
			return objectText{line: i + 1, name: match[1]}, true
		}
	}
	return objectText{}, false
}
