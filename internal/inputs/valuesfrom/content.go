package valuesfrom

import (
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/boundedyaml"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/inputs"
)

// content is the part of an object that a source uses. It must not be changed.
type content struct {
	// missing is why the object does not have the part, empty if it has.
	missing string
	// failed is why the expression failed.
	failed string
	// value is the text of a key, or the result of an expression.
	value any
	// values is the value to merge, and invalid the reason if it cannot be merged.
	values  map[string]any
	invalid string
	secrets Secrets
	// evaluated: the secrets include texts that the expression did not return.
	evaluated bool
	// namespace is that of the object.
	namespace string
}

// weight returns about how many bytes a content takes.
func (c *content) weight() int {
	weight := inputs.Weigh(c.value, math.MaxInt) + inputs.Weigh(c.values, math.MaxInt) + c.secrets.weight()
	if c.evaluated {
		for _, text := range c.secrets {
			weight += len(text)
		}
	}
	return weight
}

// newContent returns the part of an object that a source uses. It decodes the part, so that
// reconciliations need not.
func newContent(o *unstructured.Unstructured, source Source) (*content, error) {
	object := o.Object
	if source.isSecret() {
		data, err := DecodeSecret(object)
		if err != nil {
			return nil, err
		}
		object = maps.Clone(object)
		object["data"] = data
	}
	if source.Expression != nil {
		return evaluate(object, source), nil
	}
	data, _ := object["data"].(map[string]any)
	text, found := data[source.Key].(string)
	if !found {
		return &content{missing: "has no key " + source.Key + ": add it"}, nil
	}
	c := &content{value: text}
	c.values, c.invalid = parse(text)
	if source.isSecret() {
		c.secrets = secretsOf(text, c.values)
	}
	return c, nil
}

// DecodeSecret returns the data of a Secret as texts.
func DecodeSecret(secret map[string]any) (map[string]any, error) {
	encoded, _ := secret["data"].(map[string]any)
	data := make(map[string]any, len(encoded))
	for key, value := range encoded {
		text, _ := value.(string)
		decoded, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, fmt.Errorf("data.%s: want base64", key)
		}
		data[key] = string(decoded)
	}
	return data, nil
}

// evaluate returns the result of the expression of a source. Errors of CEL can quote the
// object, so that those about a Secret are not reported.
func evaluate(object map[string]any, source Source) *content {
	value, err := source.Expression.evaluate(object)
	switch hidden := source.isSecret(); {
	case errors.Is(err, errNoValue) && hidden:
		return &content{missing: errNoValue.Error() + ": it reads a field that does not exist, or the result is null"}
	case errors.Is(err, errNoValue):
		return &content{missing: err.Error()}
	case err != nil && hidden:
		return &content{failed: "failed; the error is not reported, because it may contain a part of the Secret"}
	case err != nil:
		return &content{failed: "failed: " + err.Error()}
	}
	c := &content{value: value}
	merged, isMap := value.(map[string]any)
	if c.values = merged; !isMap {
		c.invalid = "has a result that is not a map: add targetPath, or use an expression whose result is a map"
	}
	if source.isSecret() {
		// The expression can take a text apart, and the chart can join the parts.
		c.secrets, c.evaluated = slices.Concat(secretsOf("", value), secretsOf("", object["data"])), true
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
func (c *content) onto(over map[string]any, from Source) (map[string]any, error) {
	switch {
	case c.failed != "":
		return nil, from.failf(api.ReasonValuesSourceInvalid, "%s: %s %s", from.Ref, from.part(), c.failed)
	case from.TargetPath != "":
		if chart.SetValue(over, from.TargetPath, runtime.DeepCopyJSONValue(c.value)) != nil {
			return nil, from.failf(api.ReasonValuesSourceInvalid,
				"cannot set the value %s from %s of %s: the spec or an earlier source has a value on the path that is not a map or list", from.TargetPath, from.part(), from.Ref)
		}
		return over, nil
	case c.invalid != "" && from.Expression != nil:
		return nil, from.failf(api.ReasonValuesSourceInvalid, "%s: %s %s", from.Ref, from.part(), c.invalid)
	case c.invalid != "":
		return nil, from.failf(api.ReasonValuesSourceInvalid, "key %s of %s %s: expected values as in a spec", from.Key, from.Ref, c.invalid)
	default:
		return values.Merge(over, c.values), nil
	}
}

// absent returns the problem of a source whose object does not have the part.
func (c *content) absent(from Source) error {
	if from.Expression != nil {
		return from.failf(api.ReasonValuesSourceMissing, "%s: %s %s", from.Ref, from.part(), c.missing)
	}
	return from.failf(api.ReasonValuesSourceMissing, "%s %s", from.Ref, c.missing)
}

// maxPart is the maximum length of a part that counts as secret. For short secrets it is
// half of their length.
const maxPart = 6

// RedactParts returns the error text of a parser of templates or YAML without
// secrets and without parts of them. A parser quotes the token at which it fails,
// which may be the rest of a password that begins with "*" or "{{". The result also
// loses words that happen to be part of a secret, so use it for nothing else. What the author
// has written stays, as for RedactExcept, also a long part of it.
//
// Reporting only line and column would be simpler. But most of these errors come
// from templates of the chart, where the excerpt names the failing function or field
// and no secret is involved, so that users need the text.
func (s Secrets) RedactParts(message string, author func() []string) string {
	message = s.RedactExcept(message, author)
	// Index the parts of the message, because secrets can be large.
	secret := map[string]bool{}
	for part := range partsOf(message, minLength, maxPart) {
		secret[part] = false
	}
	found := false
	for _, text := range s {
		n := min(maxPart, max(minLength, len(text)/2))
		for part := range partsOf(text, n, n) {
			if _, occurs := secret[part]; occurs {
				secret[part], found = true, true
			}
		}
	}
	if !found {
		return strings.ToValidUTF8(message, "")
	}
	reach := quoted(message, author)
	hidden := make([]bool, len(message))
	for part, at := range partsOf(message, minLength, maxPart) {
		for i := at; secret[part] && reach[at] < at+len(part) && i < at+len(part); i++ {
			hidden[i] = true
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

// longPart is the length of a part that is neither guessed nor equal by chance.
const longPart = 16

// quoted is written for the long parts of the texts. Shorter texts do not count, because an
// author could write all parts of that length.
func quoted(message string, author func() []string) []int {
	reach := make([]int, len(message))
	offsets := map[string][]int{}
	for part, at := range partsOf(message, longPart, longPart) {
		offsets[part] = append(offsets[part], at)
	}
	for form := range formsOf(author) {
		for part := range partsOf(form, longPart, longPart) {
			for _, at := range offsets[part] {
				reach[at] = max(reach[at], at+longPart)
			}
			delete(offsets, part)
		}
	}
	return farthest(reach)
}

// partsOf returns all parts of a text of some lengths, and their offsets.
func partsOf(text string, minimum, maximum int) iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		for n := minimum; n <= maximum; n++ {
			for at := 0; at+n <= len(text); at++ {
				if !yield(text[at:at+n], at) {
					return
				}
			}
		}
	}
}
