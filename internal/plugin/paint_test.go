package plugin

import (
	"bytes"
	"io"
	"os"
	"testing"
)

func TestColors(t *testing.T) {
	terminal, err := os.Open("/dev/ptmx")
	if err != nil {
		t.Skip(err)
	}
	defer func() { _ = terminal.Close() }()
	for _, test := range []struct {
		mode    colorMode
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
	if got := (painter{true}).paint("web", red); got != "\x1b[31mweb\x1b[0m" {
		t.Errorf("%q", got)
	}
	if got := (painter{}).paint("web", red); got != "web" {
		t.Errorf("%q", got)
	}
}
