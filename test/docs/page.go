package docs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// Page contains the anchors, links and commands of a page.
type Page struct {
	// Anchors are those of its headings, in order.
	Anchors []string
	// Links are the destinations of its links and images.
	Links []string
	// Commands are those in code blocks of the languages console and sh. A command of
	// several lines is one text.
	Commands []string
}

// Anchors returns the anchors of a page's headings.
func Anchors(page string) []string { return Read(page).Anchors }

// Read parses a page. Links in code are ignored.
func Read(page string) Page {
	source := []byte(page)
	var read Page
	seen := map[string]int{}
	markdown := goldmark.New(goldmark.WithExtensions(extension.GFM))
	// The walk only returns errors of this function, which returns none.
	_ = ast.Walk(markdown.Parser().Parse(text.NewReader(source)), func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := node.(type) {
		case *ast.Heading:
			anchor := Anchor(words(n, source))
			if times := seen[anchor]; times > 0 {
				read.Anchors = append(read.Anchors, fmt.Sprintf("%s-%d", anchor, times))
			} else {
				read.Anchors = append(read.Anchors, anchor)
			}
			seen[anchor]++
		case *ast.Link:
			read.Links = append(read.Links, string(n.Destination))
		case *ast.Image:
			read.Links = append(read.Links, string(n.Destination))
		case *ast.FencedCodeBlock:
			read.Commands = append(read.Commands, commands(string(n.Language(source)), string(n.Lines().Value(source)))...)
		}
		return ast.WalkContinue, nil
	})
	return read
}

// commands returns the commands in a code block. In the language console, they follow a
// prompt, and the other lines are output.
func commands(language, block string) (found []string) {
	continues, end := false, ""
	for line := range strings.Lines(block) {
		line = strings.TrimRight(line, "\n")
		switch language {
		case "console":
			first, isCommand := strings.CutPrefix(line, "$ ")
			rest, isMore := strings.CutPrefix(line, "> ")
			switch {
			case isCommand:
				found = append(found, first)
				continue
			case !isMore || len(found) == 0:
				continue
			}
			line, continues = rest, true
		case "sh":
			if end == "" && !continues && (line == "" || strings.HasPrefix(line, "#")) {
				continue
			}
		default:
			return nil
		}
		if continues || end != "" {
			found[len(found)-1] += "\n" + line
		} else {
			found = append(found, line)
		}
		continues = strings.HasSuffix(line, "\\")
		if document := heredoc.FindStringSubmatch(line); document != nil {
			end = document[1]
		} else if line == end {
			end = ""
		}
	}
	return found
}

// heredoc matches the start of a text within a command, and captures its last line.
var heredoc = regexp.MustCompile(`<<-?'?(\w+)'?`)

// Rows returns the rows of all tables whose first columns have these titles. In a cell, \| is
// a |.
func Rows(page string, titles ...string) (rows [][]string) {
	in := false
	for line := range strings.Lines(page) {
		row, isRow := strings.CutPrefix(strings.TrimSpace(line), "|")
		if !isRow {
			in = false
			continue
		}
		cells := strings.Split(strings.ReplaceAll(strings.TrimSuffix(row, "|"), `\|`, "\x00"), "|")
		for i, cell := range cells {
			cells[i] = strings.ReplaceAll(strings.TrimSpace(cell), "\x00", "|")
		}
		if in && !strings.HasPrefix(cells[0], "---") {
			rows = append(rows, cells)
		}
		in = in || len(cells) >= len(titles) && slices.Equal(cells[:len(titles)], titles)
	}
	return rows
}

// words returns the text of a node without markup.
func words(node ast.Node, source []byte) string {
	var printed strings.Builder
	for child := node.FirstChild(); child != nil; child = child.NextSibling() {
		if leaf, ok := child.(*ast.Text); ok {
			printed.Write(leaf.Segment.Value(source))
		} else {
			printed.WriteString(words(child, source))
		}
	}
	return printed.String()
}

// Anchor returns GitHub's anchor of a heading: lower-case letters, digits, and
// dashes in place of spaces.
func Anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		default:
			return -1
		}
	}, heading)
}
