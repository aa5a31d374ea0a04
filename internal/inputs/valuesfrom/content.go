package valuesfrom

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/boundedyaml"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/watches"
)

// content is what one key of an object holds. Nobody changes it.
type content struct {
	// found: the object has the key.
	found bool
	text  string
	// values is the text as YAML, or invalid why it is none.
	values  map[string]any
	invalid string
	secrets Secrets
}

// newContent looks at a text once, so that no pass has to.
func newContent(kind watches.SourceKind, text string) content {
	c := content{found: true, text: text}
	c.values, c.invalid = parse(text)
	if kind == watches.SourceSecret {
		c.secrets = secretsOf(text, c.values)
	}
	return c
}

// parse reads YAML that holds a map. The second result says why it does not,
// and where; what the library says would quote the text.
func parse(text string) (map[string]any, string) {
	// By way of JSON, which makes large whole numbers what they are in a spec.
	data, err := boundedyaml.ToJSON([]byte(text), boundedyaml.Source())
	if errors.Is(err, boundedyaml.ErrTooLarge) {
		// The error says which limit and quotes nothing.
		return nil, "cannot be used: " + err.Error()
	}
	if err != nil {
		var line int
		for _, format := range []string{"yaml: line %d:", "error converting YAML to JSON: yaml: line %d:"} {
			if _, err := fmt.Sscanf(err.Error(), format, &line); err == nil {
				return nil, fmt.Sprintf("is not YAML, at line %d or next to it", line)
			}
		}
		return nil, "is not YAML"
	}
	var decoded any
	if err := json.Unmarshal(data, &decoded); err != nil {
		return nil, "is not YAML that can be written as JSON"
	}
	switch decoded := decoded.(type) {
	case nil:
		return map[string]any{}, ""
	case map[string]any:
		return decoded, ""
	default:
		return nil, "is YAML, but no map of values"
	}
}

// onto lays the content over values, or sets it at its path, and returns the
// values.
func (c content) onto(over map[string]any, from Source) (map[string]any, error) {
	switch {
	case !c.found:
		return nil, failf(api.ReasonValuesSourceMissing, "values come from key %s of %s, which has no such key: add it", from.Key, from.Ref)
	case from.TargetPath != "":
		if chart.SetText(over, from.TargetPath, c.text) != nil {
			return nil, failf(api.ReasonValuesSourceInvalid,
				"key %s of %s goes to the value %s, and something is in its way: the spec, or a source before, has no map or list where the path needs one", from.Key, from.Ref, from.TargetPath)
		}
		return over, nil
	case c.invalid != "":
		return nil, failf(api.ReasonValuesSourceInvalid, "key %s of %s %s: write it as you would the values in a spec", from.Key, from.Ref, c.invalid)
	default:
		return values.Merge(over, c.values), nil
	}
}

// maxPart is how long a part of a secret has to be to be secret itself, at most: of
// a short one, it is half of it.
const maxPart = 6

// RedactParts returns the error text of a parser of templates or YAML without
// secrets and without parts of them. A parser quotes the token at which it fails,
// which may be the rest of a password that begins with "*" or "{{". The result also
// loses words that happen to be part of a secret, so use it for nothing else.
//
// To report line and column only would be simpler. But most of these errors come
// from templates of the chart, where the excerpt names the failing function or field
// and no secret is involved, so that users need the text.
func (s Secrets) RedactParts(said string) string {
	said = s.Redact(said)
	// Secrets may be large, and what is said is not: its parts are what is kept.
	secret := map[string]bool{}
	for n := minLength; n <= maxPart; n++ {
		for i := 0; i+n <= len(said); i++ {
			secret[said[i:i+n]] = false
		}
	}
	for _, text := range s {
		n := min(maxPart, max(minLength, len(text)/2))
		for i := 0; i+n <= len(text); i++ {
			if _, told := secret[text[i:i+n]]; told {
				secret[text[i:i+n]] = true
			}
		}
	}
	hidden := make([]bool, len(said))
	for n := minLength; n <= maxPart; n++ {
		for i := 0; i+n <= len(said); i++ {
			for j := i; secret[said[i:i+n]] && j < i+n; j++ {
				hidden[j] = true
			}
		}
	}
	var left strings.Builder
	for i, hides := range hidden {
		switch {
		case !hides:
			left.WriteByte(said[i])
		case i == 0 || !hidden[i-1]:
			left.WriteString(redacted)
		}
	}
	// A letter of several bytes may have lost some.
	return strings.ToValidUTF8(left.String(), "")
}
