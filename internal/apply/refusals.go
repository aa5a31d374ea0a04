package apply

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Charts hold objects that Helm's own patches bring through and server-side
// apply refuses: lists in which a key appears twice, and fields that no schema
// declares. normalize makes of such an object what the API server made of it under
// Helm: of equal keys the last counts, and undeclared fields are dropped.

// refusalPattern is one line of the API server's refusal:
//
//	.spec.template.spec.containers[name="c"].env: duplicate entries for key [name="A"]
//	.spec.bogus: field not declared in schema
var refusalPattern = regexp.MustCompile(`(\.[^\s:]\S*): (duplicate entries for key (\[.+\])|field not declared in schema)`)

// normalize changes the object so that the refusal has no more reason, and returns
// what it did, one sentence each; none where it can do nothing.
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
				done = append(done, fmt.Sprintf("%s has %s twice: the last one counts", strings.TrimPrefix(match[1], "."), match[3]))
			}
		}
	}
	return done
}

// segment is one step of a path: into a field, or to the list item with a key.
type segment struct {
	field string
	key   map[string]any
	index int
}

// segmentPattern matches one step of a path.
var segmentPattern = regexp.MustCompile(`\.([^.\[]*)|\[([^\]]*)\]`)

// parsePath reads a path as structured merge diff writes it:
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

// parseKey reads [containerPort=80,protocol="TCP"].
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

// matches reports whether a list item has the key. A field that the item leaves
// out has the server's default, which is what the key then holds.
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

// resolve returns what a path leads to, nil where it leads nowhere.
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

// dropDuplicates returns a list in which only the last item with the key is left, at
// the index of the first one.
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

// Helm creates and patches objects, and the API server then drops each null of
// a custom resource for which the schema does not allow it. It refuses the same
// null in an apply. Whether a null is allowed is the API server's to say: no
// schema is read, and what it does not refuse is sent as it is.

// listIndex is the place of a list item in a path of a refusal.
var listIndex = regexp.MustCompile(`\[\d+\]`)

// dropNulls removes the nulls that a refusal names, and reports whether there
// were any. The schema is the same for all items of a list, so where one of
// them is refused, the field goes from all.
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

// dropNull removes the null that a path leads to. Keys of a map may hold dots,
// so that a key is whatever leads on.
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
