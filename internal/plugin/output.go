package plugin

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

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
