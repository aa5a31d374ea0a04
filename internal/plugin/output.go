package plugin

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"
)

// format is how a verb prints what it has to tell.
type format string

const (
	formatTable format = "table"
	formatJSON  format = "json"
	formatYAML  format = "yaml"
)

var formats = []string{string(formatTable), string(formatJSON), string(formatYAML)}

// Set makes it a flag.
func (f *format) Set(value string) error { return choose(f, value, formats) }

// String makes it a flag.
func (f *format) String() string { return string(*f) }

// Type makes it a flag.
func (f *format) Type() string { return "format" }

// choose sets a flag to one of the words that it takes.
func choose[T ~string](flag *T, value string, words []string) error {
	if !slices.Contains(words, value) {
		return fmt.Errorf("expected %s or %s", strings.Join(words[:len(words)-1], ", "), words[len(words)-1])
	}
	*flag = T(value)
	return nil
}

// fixed completes a flag by the words that it takes.
func fixed(words []string) cobra.CompletionFunc {
	return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
}

// print prints a value as -o asks. For json and yaml it is the value itself, by
// its json tags; table prints it for people.
func (s *session) print(value any, table func(io.Writer) error) error {
	switch s.output {
	case formatJSON:
		encoder := json.NewEncoder(s.Out)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		return encoder.Encode(value)
	case formatYAML:
		data, err := yaml.Marshal(value)
		if err != nil {
			return fmt.Errorf("encode the output: %w", err)
		}
		_, err = s.Out.Write(data)
		return err
	default:
		return table(s.Out)
	}
}

// rows prints a table, the header first. Cells that are painted must be so in
// every row of the column, for the paint counts for the width.
func rows(w io.Writer, lines ...[]string) error {
	table := printers.GetNewTabWriter(w)
	for _, cells := range lines {
		if _, err := fmt.Fprintln(table, strings.Join(cells, "\t")); err != nil {
			return err
		}
	}
	return table.Flush()
}

// note tells something beside the output: progress, and what is left out.
func (s *session) note(text string, args ...any) {
	_, _ = fmt.Fprintf(s.ErrOut, text+"\n", args...)
}

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
