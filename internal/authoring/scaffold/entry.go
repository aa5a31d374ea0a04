package scaffold

import (
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/chartwright/chartwright/internal/watches"
)

// entry is an entry of the watches file, its keys in the order in which they
// are written.
type entry []field

type field struct {
	key   string
	value any
}

// set adds a key, unless its value is empty.
func (e *entry) set(key string, value any) {
	switch v := value.(type) {
	case string:
		if v == "" {
			return
		}
	case []string:
		if len(v) == 0 {
			return
		}
	}
	*e = append(*e, field{key, value})
}

// allow adds what a chart needs to be allowed, and tells whether that is
// anything.
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

// block returns the entry as an item of a list with one key a line.
func (e entry) block(indent, nl string) (string, error) {
	var text strings.Builder
	for i, f := range e {
		lead := indent + "  "
		if i == 0 {
			lead = indent + "- "
		}
		if inner, ok := f.value.(entry); ok {
			text.WriteString(lead + f.key + ":" + nl)
			for _, f := range inner {
				value, err := inline(f.value)
				if err != nil {
					return "", err
				}
				text.WriteString(indent + "    " + f.key + ": " + value + nl)
			}
			continue
		}
		value, err := inline(f.value)
		if err != nil {
			return "", err
		}
		text.WriteString(lead + f.key + ": " + value + nl)
	}
	return text.String(), nil
}

// inline returns a value as YAML on one line.
func inline(value any) (string, error) {
	var node yaml.Node
	if err := node.Encode(value); err != nil {
		return "", err
	}
	node.Style |= yaml.FlowStyle
	data, err := yaml.Marshal(&node)
	return strings.TrimSpace(string(data)), err
}

// flow returns the entry as JSON, which is YAML on one line.
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
