package apply

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Some charts render objects that Helm's own patches can write and server-side apply
// rejects: lists with duplicate keys, and fields that no schema declares. normalize changes
// such an object to what the API server stores under Helm: the last item with a key counts,
// and undeclared fields are dropped.

// longValue matches the value in the message of a cause, which may be a whole pod template.
var longValue = regexp.MustCompile(`(?s)^Invalid value: .{80,}[}\]"]: `)

// refusedFields returns the fields that the API server rejects, with their causes, without long
// values and differences.
func refusedFields(refusal error) (reasons []string) {
	for _, cause := range causesOf(refusal) {
		if cause.Field != "" && apierrors.IsInvalid(refusal) {
			message, _, _ := strings.Cut(longValue.ReplaceAllString(cause.Message, ""), "\n")
			reasons = append(reasons, cause.Field+": "+message)
		}
	}
	return reasons
}

// Explain returns why the API server rejects the object: the fields, or the text of the error.
func (o Object) Explain(err error) string {
	if fields := refusedFields(err); len(fields) > 0 {
		return Describe(o) + ": " + strings.Join(fields, ", ")
	}
	return Explain(err)
}

// refusalPattern matches one line of an error of the API server:
//
//	.spec.template.spec.containers[name="c"].env: duplicate entries for key [name="A"]
//	.spec.bogus: field not declared in schema
var refusalPattern = regexp.MustCompile(`(\.[^\s:]\S*): (duplicate entries for key (\[.+\])|field not declared in schema)`)

// normalize changes the object so that the error no longer applies. It returns a sentence
// for each change.
func normalize(object *unstructured.Unstructured, refusal string) []string {
	var done []string
	for _, match := range refusalPattern.FindAllStringSubmatch(refusal, -1) {
		path, ok := parsePath(match[1])
		if !ok {
			continue
		}
		last := len(path) - 1
		parent, _ := resolve(object.Object, path[:last]).(map[string]any)
		value, found := parent[path[last].field]
		if match[3] == "" {
			if found {
				delete(parent, path[last].field)
				done = append(done, fmt.Sprintf("dropped %s: no such field", strings.TrimPrefix(match[1], ".")))
			}
			continue
		}
		list, isList := value.([]any)
		if key, ok := parseKey(match[3]); ok && isList {
			if kept := dropDuplicates(list, key); len(kept) < len(list) {
				parent[path[last].field] = kept
				done = append(done, fmt.Sprintf("%s has duplicate key %s: the last item is used", strings.TrimPrefix(match[1], "."), match[3]))
			}
		}
	}
	return done
}

// segment is one step of a path: a field, or a list item by key or index.
type segment struct {
	field string
	key   map[string]any
	index int
}

// segmentPattern matches one step of a path.
var segmentPattern = regexp.MustCompile(`\.([^.\[]*)|\[([^\]]*)\]`)

// parsePath parses a path in the format of structured-merge-diff:
// .spec.containers[name="c"].ports[0].
func parsePath(text string) ([]segment, bool) {
	var path []segment
	for _, match := range segmentPattern.FindAllStringSubmatch(text, -1) {
		step := segment{field: match[1]}
		rest, ok := strings.CutPrefix(text, match[0])
		if match[0][0] == '[' && ok {
			if step.key, ok = parseKey(match[2]); !ok {
				index, err := strconv.ParseUint(match[2], 10, 31)
				step.index, ok = int(index), err == nil
			}
		}
		if !ok {
			return nil, false
		}
		path, text = append(path, step), rest
	}
	return path, text == "" && len(path) > 0
}

// parseKey parses a key such as [containerPort=80,protocol="TCP"].
func parseKey(text string) (map[string]any, bool) {
	key := map[string]any{}
	for pair := range strings.SplitSeq(strings.Trim(text, "[]"), ",") {
		name, value, ok := strings.Cut(pair, "=")
		var decoded any
		if !ok || name == "" || json.Unmarshal([]byte(value), &decoded) != nil {
			return nil, false
		}
		key[name] = decoded
	}
	return key, true
}

// matches reports whether a list item has the key. A field that the item omits has the
// default of the API server, which the key contains.
func matches(item any, key map[string]any) bool {
	fields, ok := item.(map[string]any)
	if !ok {
		return false
	}
	for name, value := range key {
		if own, set := fields[name]; set && fmt.Sprint(own) != fmt.Sprint(value) {
			return false
		}
	}
	return true
}

// resolve returns the value at a path, or nil.
func resolve(value any, path []segment) any {
	for _, step := range path {
		switch v := value.(type) {
		case map[string]any:
			value = v[step.field]
		case []any:
			index := step.index
			if step.key != nil {
				index = slices.IndexFunc(v, func(item any) bool { return matches(item, step.key) })
			}
			if index < 0 || index >= len(v) {
				return nil
			}
			value = v[index]
		default:
			return nil
		}
	}
	return value
}

// dropDuplicates returns a list with only the last of the items with the key, at the index of
// the first one.
func dropDuplicates(list []any, key map[string]any) []any {
	var kept []any
	first := -1
	for _, item := range list {
		switch {
		case !matches(item, key):
			kept = append(kept, item)
		case first < 0:
			first = len(kept)
			kept = append(kept, item)
		default:
			kept[first] = item
		}
	}
	return kept
}

// When Helm creates or patches a custom resource, the API server drops each null that the
// schema does not allow. In an apply, it rejects the object for the same null. Apply
// therefore removes only those nulls that the API server has rejected; it does not read
// the schema.

// listIndex matches the index of a list item in a field path.
var listIndex = regexp.MustCompile(`\[\d+\]`)

// dropNulls removes the nulls that an error names, and reports whether there are any. All
// items of a list have the same schema, so the field is removed from all items.
func dropNulls(object map[string]any, refusal error) bool {
	dropped := false
	for _, cause := range causesOf(refusal) {
		if cause.Field == "" || !strings.Contains(cause.Message, "null") {
			continue
		}
		path := strings.Split(listIndex.ReplaceAllString(cause.Field, ".[]"), ".")
		dropped = dropNull(object, path) || dropped
	}
	return dropped
}

// dropNull removes the null at a path. A key of a map may contain dots, so several elements
// of the path may form one key.
func dropNull(value any, path []string) bool {
	dropped := false
	switch typed := value.(type) {
	case []any:
		if path[0] != "[]" || len(path) == 1 {
			return false
		}
		for _, item := range typed {
			dropped = dropNull(item, path[1:]) || dropped
		}
	case map[string]any:
		for length := 1; length <= len(path); length++ {
			key := strings.Join(path[:length], ".")
			inner, ok := typed[key]
			switch {
			case !ok:
			case length < len(path):
				dropped = dropNull(inner, path[length:]) || dropped
			case inner == nil:
				delete(typed, key)
				dropped = true
			}
		}
	}
	return dropped
}
