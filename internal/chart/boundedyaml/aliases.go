package boundedyaml

import (
	"errors"
	"fmt"
	"io"
	"strings"

	goyaml "sigs.k8s.io/yaml/goyaml.v3"
)

// Size is the size of YAML values.
type Size struct {
	// Bytes is the length of all keys and scalars.
	Bytes int
	// Values is the number of scalars, lists and maps.
	Values int
}

// most is the size at which counting ends: sizes above it are all the same to
// every limit, and sums of two of them do not overflow.
const most = 1 << 40

func (s Size) plus(other Size) Size {
	return Size{Bytes: min(s.Bytes+other.Bytes, most), Values: min(s.Values+other.Values, most)}
}

// Aliased returns what the aliases of a text add to it when each is replaced by
// the value of its anchor. It returns ErrInvalid if the text seems to have
// aliases and is not YAML, because another parser might accept it.
func Aliased(text string) (Size, error) {
	var added Size
	if !hasAlias(text) {
		return added, nil
	}
	for documents := goyaml.NewDecoder(strings.NewReader(text)); ; {
		var document goyaml.Node
		if err := documents.Decode(&document); errors.Is(err, io.EOF) {
			return added, nil
		} else if err != nil {
			return added, fmt.Errorf("%w, and it uses aliases (&name, *name)", ErrInvalid)
		}
		m := measurer{known: map[*goyaml.Node]Size{}}
		all := m.expanded(&document)
		added = added.plus(Size{Bytes: all.Bytes - m.plain.Bytes, Values: all.Values - m.plain.Values})
	}
}

// measurer measures one document.
type measurer struct {
	// known holds the size of each node with its aliases replaced.
	known map[*goyaml.Node]Size
	// plain is the size of all nodes, each counted once.
	plain Size
}

func (m *measurer) expanded(node *goyaml.Node) Size {
	if size, ok := m.known[node]; ok {
		return size
	}
	// An anchor that contains itself adds nothing here: parsers refuse it.
	m.known[node] = Size{}
	own := Size{Values: 1}
	if node.Alias == nil {
		own.Bytes = len(node.Value)
	}
	m.plain = m.plain.plus(own)
	size := own
	if node.Alias != nil {
		size = m.expanded(node.Alias)
	}
	for _, below := range node.Content {
		size = size.plus(m.expanded(below))
	}
	m.known[node] = size
	return size
}

// hasAlias reports whether a text has an anchor and an alias of one name. It
// may report an alias where a comment or a script only looks like one.
func hasAlias(text string) bool {
	anchors := names(text, '&')
	if len(anchors) == 0 {
		return false
	}
	for name := range names(text, '*') {
		if anchors[name] {
			return true
		}
	}
	return false
}

// names returns what follows each occurrence of an indicator, up to the first
// character that a name cannot have in any version of YAML.
func names(text string, indicator byte) map[string]bool {
	found := map[string]bool{}
	for rest := text; ; {
		at := strings.IndexByte(rest, indicator)
		if at < 0 {
			return found
		}
		rest = rest[at+1:]
		end := strings.IndexAny(rest, " \t\r\n,[]{}?:%@`")
		if end < 0 {
			end = len(rest)
		}
		if end > 0 {
			found[rest[:end]] = true
		}
	}
}
