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

	"github.com/chartwright/chartwright/internal/apply"
)

// Values of -o.
const (
	formatTable = "table"
	formatJSON  = "json"
	formatYAML  = "yaml"
)

// choice is a flag that takes one of a few words.
type choice struct {
	value *string
	words []string
}

// Set implements pflag.Value.
func (c choice) Set(word string) error {
	if last := len(c.words) - 1; !slices.Contains(c.words, word) {
		return fmt.Errorf("expected %s or %s", strings.Join(c.words[:last], ", "), c.words[last])
	}
	*c.value = word
	return nil
}

// String implements pflag.Value.
func (c choice) String() string { return *c.value }

// Type implements pflag.Value.
func (c choice) Type() string { return strings.Join(c.words, "|") }

// ChoiceFlag adds a flag that takes one of a few words, and completes them.
func ChoiceFlag(cmd *cobra.Command, value *string, name, short, usage string, words ...string) {
	cmd.PersistentFlags().VarP(choice{value, words}, name, short, usage)
	must(cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)))
}

// Print prints a value as JSON or YAML, by its json tags.
func Print(to io.Writer, format string, value any) error {
	if format == formatYAML {
		data, err := yaml.Marshal(value)
		if err != nil {
			return fmt.Errorf("encode the output: %w", err)
		}
		_, err = to.Write(data)
		return err
	}
	encoder := json.NewEncoder(to)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// print prints a value in the format of -o, by default as the text that table
// returns.
func (s *session) print(value any, table func() string) error {
	if s.output != formatTable {
		return Print(s.Out, s.output, value)
	}
	_, err := io.WriteString(s.Out, table())
	return err
}

// printNoting prints a value, and before it notes what is missing from it.
func (s *session) printNoting(missing []string, value any, table func() string) error {
	for _, what := range missing {
		s.note("Note: %s", what)
	}
	return s.print(value, table)
}

// rows returns a table, the header first. If a cell is colored, all cells of its
// column must be: the color counts for the width.
func rows(lines ...[]string) string {
	var text strings.Builder
	table := printers.GetNewTabWriter(&text)
	for _, cells := range lines {
		_, _ = fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	_ = table.Flush()
	return text.String()
}

// note writes to stderr: progress, and what is left out of the output.
func (s *session) note(text string, args ...any) {
	_, _ = fmt.Fprintf(s.ErrOut, text+"\n", args...)
}

// objectRef is an apply.Key with names for -o json and yaml.
type objectRef struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// short returns the name of an object, without the usual namespace.
func (r objectRef) short(usual string) string {
	if r.Namespace == usual {
		r.Namespace = ""
	}
	return apply.Key(r).String()
}

// branch is a line of a tree, with those that grow from it.
type branch struct {
	// name, state and text are the columns.
	name, state, text string
	paint             paint
	below             []branch
}

// tree returns a tree as three columns below a header.
func (p painter) tree(header branch, root branch) string {
	lines := append([]branch{header}, root.lines("", "")...)
	name, state := 0, 0
	for _, line := range lines {
		name, state = max(name, utf8.RuneCountInString(line.name)), max(state, utf8.RuneCountInString(line.state))
	}
	var text strings.Builder
	for _, line := range lines {
		columns := pad(line.name, name) + "  " + p.paint(pad(line.state, state), line.paint) + "  " + line.text
		text.WriteString(strings.TrimRight(columns, " ") + "\n")
	}
	return text.String()
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
