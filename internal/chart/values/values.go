package values

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/template"

	sprig "github.com/go-task/slim-sprig/v3"
)

// FromSpec returns the chart values in the spec of a custom resource, as a deep copy. It
// returns an error if the spec is not an object.
func FromSpec(object map[string]any) (map[string]any, error) {
	spec, found := object["spec"]
	if !found || spec == nil {
		return map[string]any{}, nil
	}
	values, ok := spec.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("spec: got %s, want an object with the chart's values", jsonType(spec))
	}
	return Normalize(values), nil
}

// jsonType describes the type of a JSON value.
func jsonType(value any) string {
	switch value.(type) {
	case []any:
		return "a list"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	default:
		return "a number"
	}
}

// Merge merges overrides into values, key by key in nested objects, and returns values. As
// in Helm, lists and scalars are replaced as a whole.
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

// Nest returns values with a value at a path, which is not empty.
func Nest(path []string, value any) map[string]any {
	for _, key := range slices.Backward(path[1:]) {
		value = map[string]any{key: value}
	}
	return map[string]any{path[0]: value}
}

// exact limits the integers that float64 represents exactly.
const exact = 1 << 53

// normalize returns a copy and converts integral numbers to int64. Templates format a large
// float64 as 1e+06, and digests must not depend on the format of JSON numbers.
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

// Normalize returns a copy of values, for example from a release record, and converts
// integral numbers to int64, as FromSpec does.
func Normalize(values map[string]any) map[string]any {
	normal := make(map[string]any, len(values))
	for key, value := range values {
		normal[key] = normalize(value)
	}
	return normal
}

// Coalesce returns the defaults with the given values merged over them. A null removes a
// default. The result shares data with both arguments, so the caller must not change it.
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
			// A map replaces a default that is not a map.
			base, _ := defaults[key].(map[string]any)
			all[key] = Coalesce(base, over)
		default:
			all[key] = over
		}
	}
	return all
}

// digestLength is the number of hex digits of a digest: 160 bits, which fit into a label.
const digestLength = 40

// Digest returns a digest of the values that does not depend on the order of keys and fits
// into a label. It panics for values that are not JSON, which FromSpec never returns.
func Digest(values map[string]any) string {
	data, err := json.Marshal(values)
	if err != nil {
		panic(fmt.Sprintf("values are not JSON: %v", err))
	}
	return DigestOf(string(data))
}

// DigestOf returns a digest of the parts and their order.
func DigestOf[T string | []byte](parts ...T) string {
	h := sha256.New()
	for _, part := range parts {
		// Writes to a hash never fail.
		_, _ = fmt.Fprintf(h, "%d:", len(part))
		// This copies a string, but not the bytes of a large file.
		_, _ = h.Write([]byte(part))
	}
	return hex.EncodeToString(h.Sum(nil))[:digestLength]
}

// Expand expands a text as the operator-sdk expands overrideValues: it replaces $NAME and
// ${NAME} by environment variables, and then executes the text as a template with sprig's
// functions and no data.
func Expand(text string) (string, error) {
	tmpl, err := template.New("").Funcs(sprig.TxtFuncMap()).Option("missingkey=error").Parse(os.ExpandEnv(text))
	if err != nil {
		return "", fmt.Errorf("parse the template: %w", err)
	}
	var out strings.Builder
	if err := tmpl.Execute(&out, nil); err != nil {
		return "", fmt.Errorf("execute the template: %w", err)
	}
	return out.String(), nil
}

// Retype returns stored values and replaces strings by the overrides of the watches entry if
// templates render both alike. The operator-sdk stores overrides as strings.
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

// Prints reports whether templates treat a value of an override like its text: an integer,
// or true. The value false differs from its text, because a non-empty string is true.
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
