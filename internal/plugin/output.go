package plugin

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
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

// choice is a flag whose value is one of a few words.
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

// ChoiceFlag adds a flag whose value is one of a few words, and their completion.
func ChoiceFlag(cmd *cobra.Command, value *string, name, short, usage string, words ...string) {
	cmd.PersistentFlags().VarP(choice{value, words}, name, short, usage)
	must(cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)))
}

// Print prints a value as YAML, or for any other format as JSON.
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

// OutputFlag adds -o to a command that prints text by default.
func OutputFlag(cmd *cobra.Command, output *string) {
	ChoiceFlag(cmd, output, "output", "o", "output format (default: text)", formatJSON, formatYAML)
}

// print prints a value in the format of -o. table returns the text for the default
// format.
func (s *session) print(value any, table func() string) error {
	if s.output != formatTable {
		return Print(s.Out, s.output, value)
	}
	_, err := io.WriteString(s.Out, table())
	return err
}

// printWithNotes prints a value, and before it the notes about what is missing.
func (s *session) printWithNotes(missing []string, value any, table func() string) error {
	for _, what := range missing {
		s.note("Note: %s", what)
	}
	return s.print(value, table)
}

// missingParts collects the notes about parts that are not shown.
type missingParts struct {
	mu      sync.Mutex
	missing []string
}

// addMissing adds a note, once.
func (m *missingParts) addMissing(what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Contains(m.missing, what) {
		m.missing = append(m.missing, what)
	}
}

// table formats rows as aligned columns. If one cell of a column is colored, all must
// be, because color codes count towards the width.
func table(rows ...[]string) string {
	var text strings.Builder
	table := printers.GetNewTabWriter(&text)
	for _, cells := range rows {
		_, _ = fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	_ = table.Flush()
	return text.String()
}

// note writes progress, or what is missing from the output, to standard error.
func (s *session) note(text string, args ...any) {
	_, _ = fmt.Fprintf(s.ErrOut, text+"\n", args...)
}

// objectRef is an apply.Key with JSON names.
type objectRef struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// short returns kind, namespace and name, without the namespace if it is the usual
// one.
func (r objectRef) short(usual string) string {
	if r.Namespace == usual {
		r.Namespace = ""
	}
	return apply.Key(r).String()
}

// branch is a node of a tree.
type branch struct {
	// name, state and text are the columns.
	name, state, text string
	// paint is the color of state.
	paint    paint
	children []branch
}

// tree formats a tree as three columns with a header.
func (p painter) tree(header branch, root branch) string {
	rows := append([]branch{header}, root.rows("", "")...)
	name, state := 0, 0
	for _, row := range rows {
		name, state = max(name, utf8.RuneCountInString(row.name)), max(state, utf8.RuneCountInString(row.state))
	}
	var text strings.Builder
	for _, row := range rows {
		columns := pad(row.name, name) + "  " + p.paint(pad(row.state, state), row.paint) + "  " + row.text
		text.WriteString(strings.TrimRight(columns, " ") + "\n")
	}
	return text.String()
}

// rows returns a branch and everything below it. first is the prefix of its own
// name, and rest that of the names below.
func (b branch) rows(first, rest string) []branch {
	own := b
	own.name, own.children = first+b.name, nil
	rows := []branch{own}
	for i, child := range b.children {
		if i < len(b.children)-1 {
			rows = append(rows, child.rows(rest+"├─ ", rest+"│  ")...)
		} else {
			rows = append(rows, child.rows(rest+"└─ ", rest+"   ")...)
		}
	}
	return rows
}

func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
}
