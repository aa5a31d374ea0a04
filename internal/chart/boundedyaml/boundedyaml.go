package boundedyaml

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"
	goyaml "sigs.k8s.io/yaml/goyaml.v3"
)

// ErrTooLarge marks a text that exceeds its Limits. The error that wraps it
// names the limit and quotes nothing of the text.
var ErrTooLarge = errors.New("the YAML is too large")

// ErrInvalid marks a text with aliases that is not YAML. The error quotes
// nothing of the text.
var ErrInvalid = errors.New("the text is not valid YAML")

// Limits are the largest size of a text, with all of its documents, after each
// alias is replaced by the value of its anchor.
type Limits struct {
	// Bytes is the length of all keys and scalars, in bytes.
	Bytes int
	// Values is the number of lines, keys and items of lists.
	Values int
}

// Source returns the limits for one key of a ConfigMap or Secret, which holds
// at most a megabyte: what people write by hand stays below a hundredth of it.
func Source() Limits { return Limits{Bytes: 4 << 20, Values: 50_000} }

// Chart returns the limits for one file of a chart.
func Chart() Limits { return Limits{Bytes: 32 << 20, Values: 2_000_000} }

// Check returns an error that wraps ErrTooLarge if the text exceeds the limits,
// or ErrInvalid if it has aliases and is not YAML. A text without aliases costs
// one look at each byte.
func (l Limits) Check(text string) error {
	size, err := Aliased(text)
	if err != nil {
		return err
	}
	switch {
	case len(text)+size.Bytes > l.Bytes:
		return fmt.Errorf("%w: it holds more than %d bytes, aliases replaced by what they stand for", ErrTooLarge, l.Bytes)
	case Tokens(text)+size.Values > l.Values:
		return fmt.Errorf("%w: it holds more than %d lines, keys and items of lists, aliases replaced by what they stand for", ErrTooLarge, l.Values)
	}
	return nil
}

// ToJSON returns a YAML document as JSON, or the error of Check.
func ToJSON(text []byte, limits Limits) ([]byte, error) {
	if err := limits.Check(string(text)); err != nil {
		return nil, err
	}
	return yaml.YAMLToJSON(text)
}

// Tokens returns an upper bound for the number of values that a text of YAML,
// JSON or TOML holds without aliases: its lines, keys and items of lists.
func Tokens[T string | []byte](text T) int {
	count := 1
	for i := range len(text) {
		switch text[i] {
		case ',', '\n', '[', '{', ':':
			count++
		case '-', '?':
			// Lists in lists can start on one line.
			if i+1 < len(text) && (text[i+1] == ' ' || text[i+1] == '\t') {
				count++
			}
		}
	}
	return count
}

// JSONValues returns an upper bound for the number of values that a JSON text
// holds: its commas, lists and maps outside of strings, and one more.
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
	return len(anchors) > 0 && names(text, '*').HasAny(anchors.UnsortedList()...)
}

// names returns what follows each occurrence of an indicator, up to the first
// character that a name cannot have in any version of YAML.
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
