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

// Secrets are texts that nobody may read in a log, an event or a status.
type Secrets []string

// minLength is the length from which a text is kept secret. Words as short as
// "yes" and "80" are everywhere, and none is a password.
const minLength = 4

// redacted stands in place of a secret.
const redacted = "[redacted]"

// Redact returns a message without the secrets in it, in whichever of their
// forms.
func (s Secrets) Redact(said string) string {
	all := make([]string, 0, 5*len(s))
	for _, text := range s {
		all = append(all, forms(text)...)
	}
	// A secret may be part of another.
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	for _, form := range all {
		said = strings.ReplaceAll(said, form, redacted)
	}
	return said
}

// forms returns a text as it is, as Secrets encode it, and as Go, JSON and the
// check of the chart's schema quote it.
func forms(text string) []string {
	quoted := strconv.Quote(text)
	quoted = quoted[1 : len(quoted)-1]
	all := []string{
		text, base64.StdEncoding.EncodeToString([]byte(text)),
		quoted, strings.ReplaceAll(strings.ReplaceAll(quoted, `\"`, `"`), `'`, `\'`),
	}
	// A text always encodes.
	if encoded, err := json.Marshal(text); err == nil {
		all = append(all, string(encoded[1:len(encoded)-1]))
	}
	if number, err := strconv.ParseFloat(text, 64); err == nil {
		// As the check of the chart's schema prints it: 12,345 and 1.234567×10⁰⁶
		all = append(all, message.NewPrinter(language.English).Sprint(number))
	}
	return all
}

// SecretsIn returns what is secret about values that nobody knows the origin of:
// each of them.
func SecretsIn(decoded map[string]any) Secrets { return secretsOf("", decoded) }

// SecretsBeside returns what is secret about the values of a stored revision:
// each that is not among those that everybody may read.
func SecretsBeside(stored map[string]any, plain ...map[string]any) Secrets {
	known := sets.New[string]()
	for _, readable := range plain {
		known.Insert(SecretsIn(readable)...)
	}
	return slices.DeleteFunc(SecretsIn(values.Normalize(stored)), known.Has)
}

// secretsOf returns what is secret about a text: the whole, each line of it,
// for errors may quote one, and each value that it holds as YAML.
func secretsOf(text string, decoded map[string]any) Secrets {
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
