package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
)

// step is one line of output and what is behind it.
type step struct {
	// line says what is done, or is what a person would have typed.
	line string
	// about is how long the step usually takes, where that is long enough to
	// wonder.
	about string
	// do returns when the step has had its effect. The note, if any, is shown
	// below the line.
	do func(context.Context) (note string, err error)
}

// lineWidth is where the results begin.
const lineWidth = 104

// take takes the steps one after the other, up to the first that fails.
func take(ctx context.Context, out io.Writer, steps []step) error {
	for _, s := range steps {
		line := s.line
		if s.about != "" {
			line += " (about " + s.about + ")"
		}
		// The line is there before the step is done, for whoever waits.
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

// sayf prints for the person in front of the terminal.
func sayf(out io.Writer, format string, args ...any) {
	fmt.Fprintf(out, format, args...) //nolint:errcheck // there is nowhere else to say it
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ")
}
