package plugin

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// terminalWriter escapes control characters and characters that change the direction of
// text, such as \u001b. Output can quote text from tenants, which must not move the
// cursor, hide text, imitate colors or set the title of a terminal. Newlines and tabs are
// not escaped, and the colors of paint become escape sequences.
type terminalWriter struct {
	to io.Writer
	// rest is an incomplete character at the end of the last write.
	rest []byte
}

// Fd returns the file descriptor of the output, for the check whether it is a terminal.
// If the output is not a file, it returns an invalid descriptor.
func (w *terminalWriter) Fd() uintptr {
	if file, ok := w.to.(interface{ Fd() uintptr }); ok {
		return file.Fd()
	}
	return ^uintptr(0)
}

// Write writes the escaped text. An incomplete character at the end waits for the next
// write.
func (w *terminalWriter) Write(text []byte) (int, error) {
	safe, rest := escaped(slices.Concat(w.rest, text))
	w.rest = rest
	if _, err := w.to.Write(safe); err != nil {
		return 0, err
	}
	return len(text), nil
}

var colors = []paint{red, green, yellow, cyan, bold, unpainted}

// escaped returns the text with escaped characters, and the incomplete character at its
// end.
func escaped(text []byte) (safe, rest []byte) {
	for utf8.FullRune(text) {
		r, size := utf8.DecodeRune(text)
		color := slices.IndexFunc(colors, func(color paint) bool { return bytes.HasPrefix(text, []byte(color)) })
		switch {
		case color >= 0:
			size = len(colors[color])
			safe = append(safe, "\x1b["+colors[color][len(painted):]...)
		// A control character (C0, C1, DEL), or one that changes the direction of text.
		case unicode.IsControl(r) && r != '\n' && r != '\t', unicode.Is(unicode.Bidi_Control, r):
			safe = fmt.Appendf(safe, `\u%04x`, r)
		default:
			safe = utf8.AppendRune(safe, r)
		}
		text = text[size:]
	}
	return safe, text
}

// Values of --color.
const (
	colorAuto   = "auto"
	colorAlways = "always"
	colorNever  = "never"
)

// paint is an ANSI escape sequence for a color, with painted in place of its start.
type paint string

// painted is no valid UTF-8, so no text of the API server contains it.
const painted = "\xfe"

const (
	plain  paint = ""
	red    paint = painted + "31m"
	green  paint = painted + "32m"
	yellow paint = painted + "33m"
	cyan   paint = painted + "36m"
	bold   paint = painted + "1m"

	unpainted paint = painted + "0m"
)

// painter colors text if on is set.
type painter struct{ on bool }

// painter returns the painter for standard output.
func (s *session) painter() painter {
	return painter{colored(s.color, s.Out, os.Getenv("NO_COLOR"))}
}

// colored reports whether to color the output, according to --color, the stream and
// https://no-color.org.
func colored(mode string, w io.Writer, noColor string) bool {
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
