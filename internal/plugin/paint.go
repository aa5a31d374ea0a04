package plugin

import (
	"io"
	"os"

	"golang.org/x/term"
)

// colorMode says when output is colored.
type colorMode string

const (
	colorAuto   colorMode = "auto"
	colorAlways colorMode = "always"
	colorNever  colorMode = "never"
)

var colorModes = []string{string(colorAuto), string(colorAlways), string(colorNever)}

// Set makes it a flag.
func (c *colorMode) Set(value string) error { return choose(c, value, colorModes) }

// String makes it a flag.
func (c *colorMode) String() string { return string(*c) }

// Type makes it a flag.
func (c *colorMode) Type() string { return "when" }

// paint is a color of terminals, by its ANSI sequence.
type paint string

const (
	plain  paint = ""
	red    paint = "\x1b[31m"
	green  paint = "\x1b[32m"
	yellow paint = "\x1b[33m"
	cyan   paint = "\x1b[36m"
	bold   paint = "\x1b[1m"

	unpainted paint = "\x1b[0m"
)

// painter colors text, or leaves it as it is.
type painter struct{ on bool }

// painter returns one for what is written to w.
func (s *session) painter(w io.Writer) painter {
	return painter{colored(s.color, w, os.Getenv("NO_COLOR"))}
}

// colored decides by the flag, the stream and https://no-color.org.
func colored(mode colorMode, w io.Writer, noColor string) bool {
	if mode != colorAuto {
		return mode == colorAlways
	}
	file, ok := w.(interface{ Fd() uintptr })
	return ok && noColor == "" && term.IsTerminal(int(file.Fd())) //nolint:gosec // descriptors are small
}

func (p painter) paint(text string, with paint) string {
	if !p.on || with == plain || text == "" {
		return text
	}
	return string(with) + text + string(unpainted)
}
