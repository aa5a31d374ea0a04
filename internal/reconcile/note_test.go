package reconcile

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/chartwright/chartwright/internal/helm"
	"github.com/chartwright/chartwright/internal/reconcile/status"
)

func TestNote(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	logged := func(lines ...string) error {
		return fmt.Errorf("upgrade: %w", &helm.ActionError{Err: errors.New("failed"), Log: lines})
	}
	const heading = "\nHelm's log ended with:\n"
	for _, test := range []struct {
		name, message string
		err           error
		want          string
	}{
		{"another error", "it failed", errors.New("failed"), "it failed"},
		{"another long error", long(status.MaxNote + 1), errors.New("failed"), long(status.MaxNote-3) + "…"},
		{"no log", "it failed", logged(), "it failed"},
		{"a log", "it failed", logged("one", "two"), "it failed" + heading + "one\ntwo"},
		{"a log that just fits", "it failed", logged("one", long(status.MaxNote-len("it failed"+heading+"one\n"))), "it failed" + heading + "one\n" + long(status.MaxNote-len("it failed"+heading+"one\n"))},
		{"a log that is one byte too long", "it failed", logged("one", long(status.MaxNote-len("it failed"+heading+"one\n")+1)), "it failed" + heading + long(status.MaxNote-len("it failed"+heading+"one\n")+1)},
		{"a message that is too long", long(status.MaxNote), logged("one", "two"), long(status.MaxNote/2-3) + "…" + heading + "one\ntwo"},
		{"a last line that is too long", "it failed", logged("one", long(2*status.MaxNote)), "it failed" + heading + long(status.MaxNote-len("it failed"+heading)-3) + "…"},
		{"everything too long", long(status.MaxNote), logged(long(400), long(300)), long(status.MaxNote/2-3) + "…" + heading + long(300)},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := note(test.message, test.err)
			if got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
			if len(got) > status.MaxNote || !utf8.ValidString(got) {
				t.Errorf("%d bytes, valid: %t", len(got), utf8.ValidString(got))
			}
		})
	}
}
