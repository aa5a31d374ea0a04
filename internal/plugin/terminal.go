package plugin

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// terminalWriter writes text that may quote what tenants wrote: control
// characters and characters that change the direction of text arrive as \u001b
// and the like, so that no message can move the cursor, hide text or set the
// title of a terminal. Newlines, tabs and the colors of paint pass.
type terminalWriter struct {
	to io.Writer
	// rest is the beginning of a character whose end is in the next write.
	rest []byte
}

// Fd returns the file descriptor of what it writes to, for the check whether
// that is a terminal, or one that is never a terminal.
func (w *terminalWriter) Fd() uintptr {
	if file, ok := w.to.(interface{ Fd() uintptr }); ok {
		return file.Fd()
	}
	return ^uintptr(0)
}

// Write writes all of the text but an incomplete character at its end.
func (w *terminalWriter) Write(text []byte) (int, error) {
	all := slices.Concat(w.rest, text)
	w.rest = nil
	if cut := incomplete(all); cut > 0 {
		w.rest = slices.Clone(all[len(all)-cut:])
		all = all[:len(all)-cut]
	}
	if _, err := io.WriteString(w.to, escaped(string(all))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// incomplete returns how many bytes at the end of a text begin a character that
// is not complete.
func incomplete(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}

// colors are the only escape sequences that pass.
var colors = []paint{red, green, yellow, cyan, bold, unpainted}

func escaped(text string) string {
	if utf8.ValidString(text) && strings.IndexFunc(text, unsafeInTerminal) < 0 {
		return text
	}
	var safe strings.Builder
next:
	for i := 0; i < len(text); {
		for _, color := range colors {
			if strings.HasPrefix(text[i:], string(color)) {
				safe.WriteString(string(color))
				i += len(color)
				continue next
			}
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		if unsafeInTerminal(r) {
			fmt.Fprintf(&safe, `\u%04x`, r)
		} else {
			safe.WriteRune(r)
		}
		i += size
	}
	return safe.String()
}

// unsafeInTerminal reports whether a character is a control character (C0, C1,
// DEL) other than newline and tab, or changes the direction of text.
func unsafeInTerminal(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
}

// Values of --color.
const (
	colorAuto   = "auto"
	colorAlways = "always"
	colorNever  = "never"
)

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
