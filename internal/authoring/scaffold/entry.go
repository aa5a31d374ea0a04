package scaffold

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/chartwright/chartwright/internal/watches"
)

// entry is an entry of the watches file. The order of its keys is preserved.
type entry []field

type field struct {
	key   string
	value any
}

// decoded returns a field whose value consists of maps and lists, as in decoded JSON.
func decoded(key string, value any) (field, error) {
	one := field{key: key}
	data, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(data, &one.value)
	}
	return one, err
}

// set adds a key, unless its value is an empty string or list.
func (e *entry) set(key string, value any) {
	if v := reflect.ValueOf(value); v.Kind() == reflect.Bool || v.Len() > 0 {
		*e = append(*e, field{key, value})
	}
}

// allow adds the allow block if it is not empty, and reports whether it did.
func (e *entry) allow(a watches.Allow) bool {
	var inner entry
	if a.OtherNamespaces {
		inner.set("otherNamespaces", true)
	}
	inner.set("clusterScoped", a.ClusterScoped)
	inner.set("lookup", string(a.Lookup))
	if len(inner) > 0 {
		*e = append(*e, field{"allow", inner})
	}
	return len(inner) > 0
}

// block returns the entry as an item of a list in block style.
func (e entry) block(indent, nl string) (string, error) {
	text, err := e.lines(indent+"  ", nl)
	return indent + "- " + strings.TrimPrefix(text, indent+"  "), err
}

// lines returns the keys of the entry as lines.
func (e entry) lines(indent, nl string) (string, error) {
	var text strings.Builder
	for _, f := range e {
		if inner, ok := f.value.(entry); ok {
			lines, err := inner.lines(indent+"  ", nl)
			if err != nil {
				return "", err
			}
			text.WriteString(indent + f.key + ":" + nl + lines)
			continue
		}
		value, err := inline(f.value)
		if err != nil {
			return "", err
		}
		text.WriteString(indent + f.key + ": " + value + nl)
	}
	return text.String(), nil
}

// inline returns a value in flow style, on one line.
func inline(value any) (string, error) {
	var node yaml.Node
	if err := node.Encode(value); err != nil {
		return "", err
	}
	node.Style |= yaml.FlowStyle
	data, err := yaml.Marshal(&node)
	return strings.TrimSpace(string(data)), err
}

// flow returns the entry as JSON, on one line.
func (e entry) flow() (string, error) {
	fields := make([]string, len(e))
	for i, f := range e {
		value, err := jsonOf(f.value)
		if err != nil {
			return "", err
		}
		fields[i] = fmt.Sprintf("%q: %s", f.key, value)
	}
	return "{" + strings.Join(fields, ", ") + "}", nil
}

func jsonOf(value any) (string, error) {
	if inner, ok := value.(entry); ok {
		return inner.flow()
	}
	data, err := json.Marshal(value)
	return string(data), err
}

// changed returns the file with another value for a key of an entry. A missing key is
// added after the kind.
func (f *watchesFile) changed(index int, one field) ([]byte, error) {
	node := f.list.Content[index]
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	flow := node.Style&yaml.FlowStyle != 0
	value, err := inline(one.value)
	if err == nil && flow {
		value, err = jsonOf(one.value)
	}
	if err != nil {
		return nil, err
	}
	key, have := lookup(node, one.key)
	if have == nil {
		return f.inserted(node, one.key, value, flow)
	}
	if same(have, one.value) {
		return f.text, nil
	}
	from := offset(f.text, have.Line, have.Column)
	to, err := f.valueEnd(have, from, flow)
	if err != nil {
		return nil, fmt.Errorf("%s:%d: %s: %w", f.name, have.Line, one.key, err)
	}
	if have.Kind != yaml.ScalarNode && have.Style&yaml.FlowStyle == 0 {
		// A list or map in block style is replaced by one in flow style.
		if bytes.Contains(f.text[from:to], []byte("#")) {
			return nil, fmt.Errorf("%s:%d: %s contains a comment, which an automatic edit would remove", f.name, have.Line, one.key)
		}
		end := offset(f.text, key.Line, key.Column) + len(key.Value)
		return splice(f.text, end, to, ": "+value), nil
	}
	return splice(f.text, from, to, value), nil
}

// same reports whether a node has a value.
func same(node *yaml.Node, value any) bool {
	var have, want any
	data, err := json.Marshal(value)
	if err != nil || json.Unmarshal(data, &want) != nil || node.Decode(&have) != nil {
		return false
	}
	return reflect.DeepEqual(have, want)
}

// lookup returns the nodes of a key and its value in a map, or nil.
func lookup(mapping *yaml.Node, key string) (name, value *yaml.Node) {
	if field := kyaml.NewRNode(mapping).Field(key); field != nil {
		return field.Key.YNode(), field.Value.YNode()
	}
	return nil, nil
}

// inserted returns the file with an additional key after the kind of an entry.
func (f *watchesFile) inserted(node *yaml.Node, key, value string, flow bool) ([]byte, error) {
	_, kind := lookup(node, "kind")
	from := offset(f.text, kind.Line, kind.Column)
	if flow {
		end, err := f.valueEnd(kind, from, true)
		if err != nil {
			return nil, err
		}
		return splice(f.text, end, end, fmt.Sprintf(", %q: %s", key, value)), nil
	}
	nl := newline(f.text)
	text := withNewline(f.text)
	at := nextLine(text, from)
	return splice(text, at, at, strings.Repeat(" ", node.Content[0].Column-1)+key+": "+value+nl), nil
}

// valueEnd returns the end of a value that starts at an offset. It supports strings on
// one line, flow style, and lists and maps in block style.
func (f *watchesFile) valueEnd(node *yaml.Node, from int, flow bool) (int, error) {
	switch {
	case node.Style&(yaml.FlowStyle|yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		return closedEnd(f.text, from)
	case node.Kind == yaml.ScalarNode:
		return plainEnd(f.text, from, flow), nil
	case node.Kind == yaml.SequenceNode, node.Kind == yaml.MappingNode:
		last := node.Content[len(node.Content)-1]
		return f.valueEnd(last, offset(f.text, last.Line, last.Column), false)
	}
	return 0, errors.New("want a string, a list or a map")
}

// plainEnd returns the end of a string without quotes.
func plainEnd(text []byte, from int, flow bool) int {
	end := lineEnd(text, from)
	if comment := bytes.Index(text[from:end], []byte(" #")); comment >= 0 {
		end = from + comment
	}
	if flow {
		if stop := bytes.IndexAny(text[from:end], ",]}"); stop >= 0 {
			end = from + stop
		}
	}
	return from + len(bytes.TrimRight(text[from:end], " \t"))
}
