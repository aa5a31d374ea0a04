package valuesfrom

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestRedactParts(t *testing.T) {
	secrets := Secrets{"*starred-Pa55", "x{{ .mustache", "längere Geheimnisse", "tiny", "otherParty"}
	author := func() []string { return []string{"a text with otherPartOfTheAuthor", "otherParty"} }
	for name, test := range map[string]struct{ message, want string }{
		"no secret":             {"a.yaml:3: unexpected end", "a.yaml:3: unexpected end"},
		"a whole secret":        {"got *starred-Pa55", "got [redacted]"},
		"the end of a secret":   {"yaml: unknown anchor 'starred-Pa55' referenced", "yaml: unknown anchor '[redacted]' referenced"},
		"a short end":           {"after -Pa55!", "after -Pa55!"},
		"a longer end":          {"after d-Pa55!", "after [redacted]!"},
		"the middle":            {`function "mustache" not defined`, `function "[redacted]" not defined`},
		"what the author wrote": {`function "otherPartOfTheAuthor" not defined`, `function "otherPartOfTheAuthor" not defined`},
		"a short part of it":    {`function "otherPart" not defined`, `function "[redacted]" not defined`},
		"adjacent secrets":      {"tinystarred-", "[redacted][redacted]"},
		"overlapping secrets":   {"x{{ .must{{ .mustache", "[redacted]"},
		"half a short secret":   {"iny", "iny"},
		"multi-byte character":  {"ängere Geheim", "[redacted]"},
		"part of a character":   {"\"\xa4ngere Ge\"", "\"[redacted]\""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := secrets.RedactParts(test.message, author); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
	if got := Secrets(nil).RedactParts("anything", nil); got != "anything" {
		t.Errorf("without secrets: %q", got)
	}
}

// TestRedactParts_RemovesAllParts checks that no part of a random secret is left in a random
// message, and that the result is valid UTF-8.
func TestRedactParts_RemovesAllParts(t *testing.T) {
	word := rapid.StringMatching(`[A-Zäß*{}]{1,30}`)
	rapid.Check(t, func(t *rapid.T) {
		secrets := Secrets(rapid.SliceOfN(word.Filter(func(text string) bool { return len(text) >= minLength }), 1, 4).Draw(t, "secrets"))
		of := rapid.SampledFrom(secrets).Draw(t, "of")
		from := rapid.IntRange(0, len(of)).Draw(t, "from")
		to := rapid.IntRange(from, len(of)).Draw(t, "to")
		got := secrets.RedactParts(rapid.StringMatching(`[a-z ]{0,9}`).Draw(t, "before")+of[from:to]+rapid.StringMatching(`[a-z ]{0,9}`).Draw(t, "after"), func() []string { return nil })
		if !utf8.ValidString(got) {
			t.Fatalf("%q is not valid UTF-8", got)
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
