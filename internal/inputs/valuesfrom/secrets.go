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

// perSecret is about how many bytes a list needs for each secret.
const perSecret = 32

// weight returns about how many bytes the secrets take.
func (s Secrets) weight() (bytes int) {
	for _, text := range s {
		bytes += len(text) + perSecret
	}
	return bytes
}

// minLength is the minimum length of a secret. Shorter words, such as "yes" and "80", are
// common and are not passwords.
const minLength = 4

// redacted replaces a secret.
const redacted = "[redacted]"

// Redact returns a message without the secrets in any of their forms.
func (s Secrets) Redact(msg string) string { return s.RedactExcept(msg, nil) }

// RedactExcept is Redact, but texts that the author of the custom resource has written stay
// whole, even if they contain a secret and a template has changed their case. If they did
// not, authors could find a secret by writing guesses. The function author is called only if
// the message contains a secret.
func (s Secrets) RedactExcept(msg string, author func() []string) string {
	found := sets.New[string]()
	var hidden []span
	for _, text := range s {
		for _, form := range forms(text) {
			if all := spansOf(msg, form); len(all) > 0 {
				hidden = append(hidden, all...)
				found.Insert(lower(form))
			}
		}
	}
	if author != nil && len(hidden) > 0 {
		hidden = outside(hidden, written(lower(msg), author(), found))
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

// span is a part of a message.
type span struct{ from, to int }

// spansOf returns all occurrences of a text, which may overlap.
func spansOf(msg, text string) []span {
	var all []span
	for from := 0; ; from++ {
		at := strings.Index(msg[from:], text)
		if at < 0 {
			return all
		}
		from += at
		all = append(all, span{from, from + len(text)})
	}
}

// written returns where a message in lower case has a text that contains a secret, as is or
// quoted.
func written(msg string, texts []string, secrets sets.Set[string]) []span {
	var all []span
	for _, text := range texts {
		for _, form := range forms(text) {
			form = lower(form)
			for secret := range secrets {
				if strings.Contains(form, secret) {
					all = append(all, spansOf(msg, form)...)
					break
				}
			}
		}
	}
	return all
}

// outside returns the spans that are not inside of one of some others.
func outside(spans, others []span) []span {
	slices.SortFunc(others, func(a, b span) int { return a.from - b.from })
	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })
	end := 0
	return slices.DeleteFunc(spans, func(s span) bool {
		for ; len(others) > 0 && others[0].from <= s.from; others = others[1:] {
			end = max(end, others[0].to)
		}
		return s.to <= end
	})
}

// lower returns a text of the same length with lower-case ASCII letters.
func lower(text string) string {
	all := []byte(text)
	for i, c := range all {
		if 'A' <= c && c <= 'Z' {
			all[i] = c + 'a' - 'A'
		}
	}
	return string(all)
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
