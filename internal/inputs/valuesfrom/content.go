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

// content is the content of one key of an object. It must not be changed.
type content struct {
	// found: the object has the key.
	found bool
	text  string
	// values is the decoded YAML, and invalid the reason if it cannot be decoded.
	values  map[string]any
	invalid string
	secrets Secrets
}

// newContent decodes a text, so that reconciliations need not.
func newContent(kind watches.SourceKind, text string) content {
	c := content{found: true, text: text}
	c.values, c.invalid = parse(text)
	if kind == watches.SourceSecret {
		c.secrets = secretsOf(text, c.values)
	}
	return c
}

// parse decodes YAML that contains a map. Otherwise it returns the problem and the line.
// The errors of the YAML library are not used, because they quote the text.
func parse(text string) (map[string]any, string) {
	// Decoding JSON keeps large integers as they are in a spec.
	data, err := boundedyaml.ToJSON([]byte(text), boundedyaml.Source())
	if errors.Is(err, boundedyaml.ErrTooLarge) {
		// The error names the limit and does not quote the text.
		return nil, "cannot be used: " + err.Error()
	}
	if err != nil {
		var line int
		for _, format := range []string{"yaml: line %d:", "error converting YAML to JSON: yaml: line %d:"} {
			if _, err := fmt.Sscanf(err.Error(), format, &line); err == nil {
				return nil, fmt.Sprintf("is not YAML, at or near line %d", line)
			}
		}
		return nil, "is not YAML"
	}
	var decoded any
	if err := json.Unmarshal(data, &decoded); err != nil {
		return nil, "cannot be converted to JSON"
	}
	switch decoded := decoded.(type) {
	case nil:
		return map[string]any{}, ""
	case map[string]any:
		return decoded, ""
	default:
		return nil, "is not a map of values"
	}
}

// onto merges the content into values, or sets it at its path, and returns the values.
func (c content) onto(over map[string]any, from Source) (map[string]any, error) {
	switch {
	case !c.found:
		return nil, failf(api.ReasonValuesSourceMissing, "valuesFrom: %s has no key %s: add it", from.Ref, from.Key)
	case from.TargetPath != "":
		if chart.SetText(over, from.TargetPath, c.text) != nil {
			return nil, failf(api.ReasonValuesSourceInvalid,
				"valuesFrom: cannot set the value %s from key %s of %s: the spec or an earlier source has a value on the path that is not a map or list", from.TargetPath, from.Key, from.Ref)
		}
		return over, nil
	case c.invalid != "":
		return nil, failf(api.ReasonValuesSourceInvalid, "valuesFrom: key %s of %s %s: expected values as in a spec", from.Key, from.Ref, c.invalid)
	default:
		return values.Merge(over, c.values), nil
	}
}

// maxPart is the maximum length of a part that counts as secret. For short secrets it is
// half of their length.
const maxPart = 6

// RedactParts returns the error text of a parser of templates or YAML without
// secrets and without parts of them. A parser quotes the token at which it fails,
// which may be the rest of a password that begins with "*" or "{{". The result also
// loses words that happen to be part of a secret, so use it for nothing else.
//
// Reporting only line and column would be simpler. But most of these errors come
// from templates of the chart, where the excerpt names the failing function or field
// and no secret is involved, so that users need the text.
func (s Secrets) RedactParts(message string) string {
	message = s.Redact(message)
	// Index the parts of the message, because secrets can be large.
	secret := map[string]bool{}
	for n := minLength; n <= maxPart; n++ {
		for i := 0; i+n <= len(message); i++ {
			secret[message[i:i+n]] = false
		}
	}
	for _, text := range s {
		n := min(maxPart, max(minLength, len(text)/2))
		for i := 0; i+n <= len(text); i++ {
			if _, occurs := secret[text[i:i+n]]; occurs {
				secret[text[i:i+n]] = true
			}
		}
	}
	hidden := make([]bool, len(message))
	for n := minLength; n <= maxPart; n++ {
		for i := 0; i+n <= len(message); i++ {
			for j := i; secret[message[i:i+n]] && j < i+n; j++ {
				hidden[j] = true
			}
		}
	}
	var left strings.Builder
	for i, hide := range hidden {
		switch {
		case !hide:
			left.WriteByte(message[i])
		case i == 0 || !hidden[i-1]:
			left.WriteString(redacted)
		}
	}
	// A multi-byte character may have lost some of its bytes.
	return strings.ToValidUTF8(left.String(), "")
}
