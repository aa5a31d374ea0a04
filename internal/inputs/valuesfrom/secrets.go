package valuesfrom

import (
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
func (s Secrets) Redact(msg string) string {
	all := make([]string, 0, 5*len(s))
	for _, text := range s {
		all = append(all, forms(text)...)
	}
	// Longest first, because a secret may be part of another one.
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	for _, form := range all {
		msg = strings.ReplaceAll(msg, form, redacted)
	}
	return msg
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
