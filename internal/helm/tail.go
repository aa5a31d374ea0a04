package helm

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/chartwright/chartwright/internal/release"
)

// tailLength is the number of lines of Helm's log that an error carries, and
// outputWidth what is kept of a line that a hook has printed, in bytes.
const (
	tailLength  = 8
	outputWidth = 200
)

// tail keeps the end of what one action logs.
type tail struct {
	// redact keeps secrets out of it.
	redact func(string) string

	mu   sync.Mutex
	last []string
}

func (t *tail) printf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = append(t.last, t.redact(fmt.Sprintf(format, args...)))
	if len(t.last) > tailLength {
		t.last = slices.Delete(t.last, 0, len(t.last)-tailLength)
	}
}

func (t *tail) lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.last)
}

// output returns where what a container of a hook has printed goes, as Helm
// wants it. Each write must be of whole lines.
func (t *tail) output(_, _, container string) io.Writer {
	return containerOutput{log: t, container: container}
}

type containerOutput struct {
	log       *tail
	container string
}

// Write logs each line that says something, cut to a length that leaves room
// for the others.
func (o containerOutput) Write(text []byte) (int, error) {
	for line := range strings.Lines(strings.ToValidUTF8(string(text), "")) {
		line = strings.TrimSpace(strings.Map(printable, line))
		if line != "" {
			o.log.printf("%s: %s", o.container, release.Truncate(o.log.redact(line), outputWidth))
		}
	}
	return len(text), nil
}

// printable drops what would color or clear a terminal.
func printable(r rune) rune {
	switch {
	case r == '\t':
		return ' '
	case unicode.IsControl(r):
		return -1
	default:
		return r
	}
}
