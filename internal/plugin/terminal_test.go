package plugin

import (
	"bytes"
	"io"
	"os"
	"testing"
)

func TestTerminalWriter_EscapesControlCharacters(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"plain text", "Ready: größer\ttext\n", "Ready: größer\ttext\n"},
		{"colors of the plugin", string(red) + "failed" + string(unpainted), "\x1b[31mfailed\x1b[0m"},
		{"colors of a tenant", "\x1b[32mTrue\x1b[0m", `\u001b[32mTrue\u001b[0m`},
		{"window title", "\x1b]0;OWNED\x07", `\u001b]0;OWNED\u0007`},
		{"clear screen", "\x1b[2J\x1b[8m", `\u001b[2J\u001b[8m`},
		{"carriage return", "fine\rOWNED", `fine\u000dOWNED`},
		{"C1 control sequence", "\u009b2J", `\u009b2J`},
		{"change of direction", "a\u202eb\u2066c", `a\u202eb\u2066c`},
		{"invalid UTF-8", "a\xffb\xfec", "a\uFFFDb\uFFFDc"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var whole, pieces bytes.Buffer
			if _, err := io.WriteString(&terminalWriter{to: &whole}, test.text); err != nil {
				t.Fatal(err)
			}
			if whole.String() != test.want {
				t.Errorf("%q, want %q", whole.String(), test.want)
			}
			// An escape sequence in several writes is escaped, too. The plugin writes each color at
			// once.
			if test.name == "colors of the plugin" {
				return
			}
			byByte := &terminalWriter{to: &pieces}
			for i := range len(test.text) {
				if _, err := byByte.Write([]byte{test.text[i]}); err != nil {
					t.Fatal(err)
				}
			}
			if pieces.String() != test.want {
				t.Errorf("by byte %q, want %q", pieces.String(), test.want)
			}
		})
	}
}

func TestColored_FlagTerminalAndNoColor(t *testing.T) {
	terminal, err := os.Open("/dev/ptmx")
	if err != nil {
		t.Skip(err)
	}
	defer func() { _ = terminal.Close() }()
	for _, test := range []struct {
		mode    string
		w       io.Writer
		noColor string
		want    bool
	}{
		{colorAlways, &bytes.Buffer{}, "", true},
		{colorAlways, &bytes.Buffer{}, "1", true},
		{colorNever, terminal, "", false},
		{colorAuto, terminal, "", true},
		{colorAuto, terminal, "1", false},
		{colorAuto, &bytes.Buffer{}, "", false},
	} {
		if got := colored(test.mode, test.w, test.noColor); got != test.want {
			t.Errorf("%s: %v", test.mode, got)
		}
	}
	if got := (painter{true}).paint("web", red); got != string(red)+"web"+string(unpainted) {
		t.Errorf("%q", got)
	}
	if got := (painter{}).paint("web", red); got != "web" {
		t.Errorf("%q", got)
	}
}
