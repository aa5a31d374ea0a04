package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
)

// step is one line of output, with an action.
type step struct {
	// line describes the step, or is the command that it runs.
	line string
	// about is the usual duration of the step, if it takes some time.
	about string
	// do returns when the step's effect is complete. The note, if any, is
	// printed below the line.
	do func(context.Context) (note string, err error)
}

// lineWidth is the column of the results.
const lineWidth = 104

// run runs steps one after another until one fails.
func runSteps(ctx context.Context, out io.Writer, steps []step) error {
	for _, s := range steps {
		line := s.line
		if s.about != "" {
			line += " (about " + s.about + ")"
		}
		// Print the line before the step, so that the user knows what is
		// running.
		sayf(out, "%-*s ", lineWidth, line)
		began := time.Now()
		note, err := s.do(ctx)
		took := time.Since(began).Seconds()
		if err != nil {
			sayf(out, "✗ %5.2f s\n", took)
			return fmt.Errorf("%s: %w", s.line, err)
		}
		sayf(out, "✓ %5.2f s\n", took)
		if note != "" {
			sayf(out, "%s\n", indent(note))
		}
	}
	return nil
}

// sayf prints to the terminal.
func sayf(out io.Writer, format string, args ...any) {
	fmt.Fprintf(out, format, args...) //nolint:errcheck // there is no other output
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ")
}
