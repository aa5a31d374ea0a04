package boundedyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"
	goyaml "sigs.k8s.io/yaml/goyaml.v3"
)

// ErrTooLarge is the error for a text that exceeds its Limits. The error that wraps it
// contains the limit and no part of the text.
var ErrTooLarge = errors.New("the YAML is too large")

// ErrInvalid is the error for a text with aliases that is not YAML. It contains no part of
// the text.
var ErrInvalid = errors.New("the text is not valid YAML")

// Limits are the maximum size of a text with all of its documents, after each alias is
// replaced by the value of its anchor.
type Limits struct {
	// Bytes is the length of all keys and scalars, in bytes.
	Bytes int
	// Values is the number of lines, keys and list items.
	Values int
}

// Source returns the limits for one key of a ConfigMap or Secret, whose size is at most one
// megabyte. Ordinary values need less than a hundredth of the limits.
func Source() Limits { return Limits{Bytes: 4 << 20, Values: 50_000} }

// Chart returns the limits for one file of a chart.
func Chart() Limits { return Limits{Bytes: 32 << 20, Values: 2_000_000} }

// Check returns an error that wraps ErrTooLarge if the text exceeds the limits, or
// ErrInvalid if the text has aliases and is not YAML. For a text without aliases it only
// counts characters.
func (l Limits) Check(text string) error {
	size, err := Aliased(text)
	if err != nil {
		return err
	}
	return l.checkSize(len(text), Tokens(text), size)
}

// checkSize returns an error if the length and the tokens of a text, and the size that its
// aliases add, exceed the limits.
func (l Limits) checkSize(length, tokens int, added Size) error {
	switch {
	case length+added.Bytes > l.Bytes:
		return fmt.Errorf("%w: more than %d bytes after replacing aliases by their values", ErrTooLarge, l.Bytes)
	case tokens+added.Values > l.Values:
		return fmt.Errorf("%w: more than %d lines, keys and list items after replacing aliases by their values", ErrTooLarge, l.Values)
	}
	return nil
}

// CheckFile is Check for the content of a file. It copies only a text with anchors: the files
// of a chart can have megabytes.
func (l Limits) CheckFile(text []byte) error {
	if bytes.IndexByte(text, '&') >= 0 {
		return l.Check(string(text))
	}
	return l.checkSize(len(text), Tokens(text), Size{})
}

// ToJSON returns a YAML document as JSON, or the error of Check.
func ToJSON(text []byte, limits Limits) ([]byte, error) {
	if err := limits.Check(string(text)); err != nil {
		return nil, err
	}
	return yaml.YAMLToJSON(text)
}

// Tokens returns an upper bound for the number of values in a text of YAML, JSON or TOML
// without aliases: the number of its lines, keys and list items.
func Tokens[T string | []byte](text T) int {
	count := 1
	for i := range len(text) {
		switch text[i] {
		case ',', '\n', '[', '{', ':':
			count++
		case '-', '?':
			// Nested lists can start on one line.
			if i+1 < len(text) && (text[i+1] == ' ' || text[i+1] == '\t') {
				count++
			}
		}
	}
	return count
}

// JSONValues returns an upper bound for the number of values in a JSON text: the number of
// commas, lists and maps outside strings, plus one.
func JSONValues[T ~string | ~[]byte](text T) int {
	count, quoted := 1, false
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			quoted = !quoted
		case '\\':
			i++
		case ',', '[', '{':
			if !quoted {
				count++
			}
		}
	}
	return count
}

// Size is the size of YAML values.
type Size struct {
	// Bytes is the length of all keys and scalars.
	Bytes int
	// Values is the number of scalars, lists and maps.
	Values int
}

// most is the maximum counted size. It exceeds every limit, and the sum of two such sizes
// does not overflow.
const most = 1 << 40

func (s Size) plus(other Size) Size {
	return Size{Bytes: min(s.Bytes+other.Bytes, most), Values: min(s.Values+other.Values, most)}
}

// Aliased returns the size that the aliases of a text add when each is replaced by the value
// of its anchor. It returns ErrInvalid if the text seems to have aliases and is not YAML,
// because another parser might accept the text.
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
	// A recursive anchor adds nothing, because parsers reject it.
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

// hasAlias reports whether a text contains an anchor and an alias with the same name. It
// can also return true if a comment or a string looks like an alias.
func hasAlias(text string) bool {
	anchors := names(text, '&')
	return len(anchors) > 0 && names(text, '*').HasAny(anchors.UnsortedList()...)
}

// names returns the names that follow an indicator. A name ends at the first character that
// is not valid in names in any version of YAML.
func names(text string, indicator byte) sets.Set[string] {
	found := sets.Set[string]{}
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
			found.Insert(rest[:end])
		}
	}
}
