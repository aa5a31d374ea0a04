package values

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"strconv"
	"strings"
	"text/template"

	sprig "github.com/go-task/slim-sprig/v3"
)

// FromSpec returns the chart values that a custom resource's spec asks for. The
// result shares nothing with the spec. A spec that is no object is an error.
func FromSpec(object map[string]any) (map[string]any, error) {
	spec, found := object["spec"]
	if !found || spec == nil {
		return map[string]any{}, nil
	}
	values, ok := spec.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("spec: expected an object that holds the chart's values, found %T", spec)
	}
	return Normalize(values), nil
}

// Merge lays overrides over values, key by key in nested objects, and returns
// values. Lists and scalars are replaced whole, as Helm does it.
func Merge(values, overrides map[string]any) map[string]any {
	for key, over := range overrides {
		base, isMap := values[key].(map[string]any)
		overMap, overIsMap := over.(map[string]any)
		if isMap && overIsMap {
			values[key] = Merge(base, overMap)
		} else {
			values[key] = normalize(over)
		}
	}
	return values
}

// exact is the largest magnitude up to which every whole float64 is exact.
const exact = 1 << 53

// normalize returns a copy in which whole numbers are int64. Templates print a
// large float64 as 1e+06, and a digest must not depend on how JSON was written.
func normalize(value any) any {
	switch v := value.(type) {
	case map[string]any:
		return Normalize(v)
	case []any:
		list := make([]any, len(v))
		for i, inner := range v {
			list[i] = normalize(inner)
		}
		return list
	case float64:
		if v == math.Trunc(v) && math.Abs(v) <= exact {
			return int64(v)
		}
		return v
	case int:
		return int64(v)
	default:
		return v
	}
}

// Normalize returns a copy of values that came from elsewhere, such as a release
// record, with whole numbers as they are in values that came from a spec.
func Normalize(values map[string]any) map[string]any {
	normal := make(map[string]any, len(values))
	for key, value := range values {
		normal[key] = normalize(value)
	}
	return normal
}

// Coalesce returns the values that a release has: defaults with what was given
// over them. A null takes a default away. The result shares what it can with
// both, so that nobody may change it.
func Coalesce(defaults, given map[string]any) map[string]any {
	if len(given) == 0 {
		return defaults
	}
	all := maps.Clone(defaults)
	if all == nil {
		all = make(map[string]any, len(given))
	}
	for key, over := range given {
		switch over := over.(type) {
		case nil:
			delete(all, key)
		case map[string]any:
			// A default that is not a map counts for nothing.
			base, _ := defaults[key].(map[string]any)
			all[key] = Coalesce(base, over)
		default:
			all[key] = over
		}
	}
	return all
}

// digestLength is the number of hex digits of a digest: 160 bits, which fit
// into a label.
const digestLength = 40

// Digest returns a digest of the values, equal for equal values in whatever
// order their keys stand. It fits into a label. It panics on values that are
// not JSON, which FromSpec never returns.
func Digest(values map[string]any) string {
	data, err := json.Marshal(values)
	if err != nil {
		panic(fmt.Sprintf("values are not JSON: %v", err))
	}
	return DigestOf(string(data))
}

// DigestOf returns a digest of the parts, which differs where any part differs
// or stands elsewhere.
func DigestOf(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		// Writes to a hash never fail.
		_, _ = fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))[:digestLength]
}

// Expand returns the text with $NAME and ${NAME} replaced from the environment
// and then executed as a template with sprig's functions and no data, which is
// how the operator-sdk expands overrideValues.
func Expand(text string) (string, error) {
	tmpl, err := template.New("").Funcs(sprig.TxtFuncMap()).Option("missingkey=error").Parse(os.ExpandEnv(text))
	if err != nil {
		return "", fmt.Errorf("not a template: %w", err)
	}
	var out strings.Builder
	if err := tmpl.Execute(&out, nil); err != nil {
		return "", fmt.Errorf("executing the template: %w", err)
	}
	return out.String(), nil
}

// Retype returns stored values with those that an entry overrides as the entry
// types them, where templates make the same of both. The operator-sdk stores a
// text for each.
func Retype(stored, overrides map[string]any) map[string]any {
	typed := maps.Clone(stored)
	for key, over := range overrides {
		switch was := stored[key].(type) {
		case map[string]any:
			if inner, ok := over.(map[string]any); ok {
				typed[key] = Retype(was, inner)
			}
		case string:
			if Prints(over, was) {
				typed[key] = over
			}
		}
	}
	return typed
}

// Prints reports whether a value of an override means to templates what its text
// did: a number, or what is true. What is false does not, for a text is true to
// a template.
func Prints(value any, text string) bool {
	switch v := value.(type) {
	case int64:
		return text == strconv.FormatInt(v, 10)
	case bool:
		return v && text == "true"
	default:
		return false
	}
}
