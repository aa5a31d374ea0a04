package plugin

import (
	"io"
	"strings"
	"unicode/utf8"
)

// branch is a line of a tree, with those that grow from it.
type branch struct {
	// name, state and text are the columns.
	name, state, text string
	paint             paint
	below             []branch
}

// printTree prints a tree as three columns below a header.
func (p painter) printTree(w io.Writer, header branch, root branch) error {
	lines := append([]branch{header}, root.lines("", "")...)
	name, state := 0, 0
	for _, line := range lines {
		name, state = max(name, utf8.RuneCountInString(line.name)), max(state, utf8.RuneCountInString(line.state))
	}
	for _, line := range lines {
		text := pad(line.name, name) + "  " + p.paint(pad(line.state, state), line.paint) + "  " + line.text
		if _, err := io.WriteString(w, strings.TrimRight(text, " ")+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// lines returns a branch and all that grows from it, with what is drawn before
// the names: first before its own, then before all below.
func (b branch) lines(first, then string) []branch {
	own := b
	own.name, own.below = first+b.name, nil
	lines := []branch{own}
	for i, inner := range b.below {
		if i < len(b.below)-1 {
			lines = append(lines, inner.lines(then+"├─ ", then+"│  ")...)
		} else {
			lines = append(lines, inner.lines(then+"└─ ", then+"   ")...)
		}
	}
	return lines
}

func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
}
