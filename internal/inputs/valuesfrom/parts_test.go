package valuesfrom

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestRedactParts(t *testing.T) {
	secrets := Secrets{"*starred-Pa55", "x{{ .mustache", "längere Geheimnisse", "tiny"}
	for name, test := range map[string]struct{ said, want string }{
		"nothing of it":        {"a.yaml:3: unexpected end", "a.yaml:3: unexpected end"},
		"the whole":            {"got *starred-Pa55", "got [redacted]"},
		"the rest of it":       {"yaml: unknown anchor 'starred-Pa55' referenced", "yaml: unknown anchor '[redacted]' referenced"},
		"the end of it":        {"after -Pa55!", "after -Pa55!"},
		"more of its end":      {"after d-Pa55!", "after [redacted]!"},
		"the middle":           {`function "mustache" not defined`, `function "[redacted]" not defined`},
		"two that meet":        {"tinystarred-", "[redacted][redacted]"},
		"two that overlap":     {"x{{ .must{{ .mustache", "[redacted]"},
		"the half of a short":  {"iny", "iny"},
		"through a letter":     {"ängere Geheim", "[redacted]"},
		"from within a letter": {"\"\xa4ngere Ge\"", "\"[redacted]\""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := secrets.RedactParts(test.said); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
	if got := Secrets(nil).RedactParts("anything"); got != "anything" {
		t.Errorf("without secrets: %q", got)
	}
}

// TestRedactPartsLeavesNone: whatever is said around whichever part of a secret,
// nothing is left of it, and what is left is text.
func TestRedactPartsLeavesNone(t *testing.T) {
	word := rapid.StringMatching(`[A-Zäß*{}]{1,30}`)
	rapid.Check(t, func(t *rapid.T) {
		secrets := Secrets(rapid.SliceOfN(word.Filter(func(text string) bool { return len(text) >= minLength }), 1, 4).Draw(t, "secrets"))
		of := rapid.SampledFrom(secrets).Draw(t, "of")
		from := rapid.IntRange(0, len(of)).Draw(t, "from")
		to := rapid.IntRange(from, len(of)).Draw(t, "to")
		got := secrets.RedactParts(rapid.StringMatching(`[a-z ]{0,9}`).Draw(t, "before") + of[from:to] + rapid.StringMatching(`[a-z ]{0,9}`).Draw(t, "after"))
		if !utf8.ValidString(got) {
			t.Fatalf("%q is no text", got)
		}
		for _, text := range secrets {
			n := min(maxPart, max(minLength, len(text)/2))
			for i := 0; i+n <= len(text); i++ {
				if strings.Contains(got, text[i:i+n]) {
					t.Fatalf("%q is left of %q in %q", text[i:i+n], text, got)
				}
			}
		}
	})
}
