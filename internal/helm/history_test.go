package helm

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/chartwright/chartwright/internal/api"
)

func TestLogBuffer_KeepsLastLines(t *testing.T) {
	log := &logBuffer{redact: func(text string) string { return text }}
	if got := log.lines(); len(got) != 0 {
		t.Errorf("an empty log: %v", got)
	}
	var want []string
	for i := range logLines + 3 {
		log.printf("line %d", i)
		want = append(want, fmt.Sprintf("line %d", i))
	}
	if diff := cmp.Diff(want[3:], log.lines()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	log.lines()[0] = "changed"
	if log.lines()[0] == "changed" {
		t.Error("the caller got the internal slice")
	}
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for range 50 {
				log.printf("more")
				_ = log.lines()
			}
		})
	}
	wait.Wait()
	if len(log.lines()) != logLines {
		t.Errorf("%d lines", len(log.lines()))
	}
}

func TestTruncate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune("aé€😀"))).Draw(t, "text")
		limit := rapid.IntRange(3, 40).Draw(t, "limit")
		got := api.Truncate(text, limit)
		switch {
		case !utf8.ValidString(got):
			t.Fatalf("%q is not UTF-8", got)
		case len(got) > limit:
			t.Fatalf("%q has %d bytes, more than %d", got, len(got), limit)
		case len(text) <= limit && got != text:
			t.Fatalf("%q became %q", text, got)
		case len(text) > limit && (!strings.HasSuffix(got, "…") || !strings.HasPrefix(text, strings.TrimSuffix(got, "…"))):
			t.Fatalf("%q became %q", text, got)
		}
	})
}
