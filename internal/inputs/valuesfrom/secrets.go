package valuesfrom

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/chartwright/chartwright/internal/chart/values"
)

// Secrets are texts that must not appear in a log, an event or a status.
type Secrets []string

// minLength is the minimum length of a secret. Shorter words, such as "yes" and "80", are
// common and are not passwords.
const minLength = 4

// redacted replaces a secret.
const redacted = "[redacted]"

// Redact returns a message without the secrets in any of their forms.
func (s Secrets) Redact(msg string) string { return s.RedactExcept(msg, nil) }

// RedactExcept is Redact, but texts that the author of the custom resource has written stay
// whole, even if they contain a secret. If they did not, authors could find a secret by
// writing guesses. The function author is called only if the message contains a secret.
func (s Secrets) RedactExcept(msg string, author func() []string) string {
	type span struct{ from, to int }
	var hidden []span
	var written []string
	for _, text := range s {
		for _, form := range forms(text) {
			for at := strings.Index(msg, form); at >= 0; at = next(msg, form, at) {
				if author != nil && written == nil {
					written = author()
				}
				if !slices.ContainsFunc(written, func(text string) bool { return covers(msg, text, form, at) }) {
					hidden = append(hidden, span{at, at + len(form)})
				}
			}
		}
	}
	slices.SortFunc(hidden, func(a, b span) int { return cmp.Or(a.from-b.from, b.to-a.to) })
	var left strings.Builder
	end := 0
	for _, h := range hidden {
		if h.from >= end {
			left.WriteString(msg[end:h.from] + redacted)
		}
		end = max(end, h.to)
	}
	return left.String() + msg[end:]
}

// next returns the offset of the next occurrence of a text after one, or -1.
func next(msg, text string, at int) int {
	if i := strings.Index(msg[at+1:], text); i >= 0 {
		return at + 1 + i
	}
	return -1
}

// covers reports whether a part of a message at an offset is inside of a text there, as is or
// quoted.
func covers(msg, text, part string, at int) bool {
	if !strings.Contains(text, part) {
		return false
	}
	for _, form := range forms(text) {
		for in := strings.Index(form, part); in >= 0; in = next(form, part, in) {
			if from := at - in; from >= 0 && strings.HasPrefix(msg[from:], form) {
				return true
			}
		}
	}
	return false
}

// forms returns a text unchanged, as Secrets encode it, and as Go, JSON and the schema
// validation quote it.
func forms(text string) []string {
	quoted := strconv.Quote(text)
	quoted = quoted[1 : len(quoted)-1]
	all := []string{
		text, base64.StdEncoding.EncodeToString([]byte(text)),
		quoted, strings.ReplaceAll(strings.ReplaceAll(quoted, `\"`, `"`), `'`, `\'`),
	}
	// Encoding a string never fails.
	if encoded, err := json.Marshal(text); err == nil {
		all = append(all, string(encoded[1:len(encoded)-1]))
	}
	if number, err := strconv.ParseFloat(text, 64); err == nil {
		// As the schema validation prints numbers: 12,345 and 1.234567×10⁰⁶.
		all = append(all, message.NewPrinter(language.English).Sprint(number))
	}
	return all
}

// SecretsIn returns the secrets in values of unknown origin: every value.
func SecretsIn(decoded map[string]any) Secrets { return secretsOf("", decoded) }

// SecretsBeside returns the secrets in the values of a stored revision: every value that is
// not among the readable values.
func SecretsBeside(stored map[string]any, plain ...map[string]any) Secrets {
	known := sets.New[string]()
	for _, readable := range plain {
		known.Insert(SecretsIn(readable)...)
	}
	return slices.DeleteFunc(SecretsIn(values.Normalize(stored)), known.Has)
}

// secretsOf returns the secrets in a text: the whole text, each line, because errors can
// quote a line, and each value that it contains as YAML.
func secretsOf(text string, decoded any) Secrets {
	found := sets.New[string]()
	add := func(text string) {
		for _, part := range append(strings.Split(text, "\n"), text) {
			if part = strings.TrimSpace(part); len(part) >= minLength {
				found.Insert(part)
			}
		}
	}
	add(text)
	var leaves func(any)
	leaves = func(value any) {
		switch v := value.(type) {
		case map[string]any:
			for _, inner := range v {
				leaves(inner)
			}
		case []any:
			for _, inner := range v {
				leaves(inner)
			}
		case string:
			add(v)
		case int64, float64:
			add(fmt.Sprint(v))
		}
	}
	leaves(decoded)
	return sets.List(found)
}
