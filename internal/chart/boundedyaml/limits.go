package boundedyaml

import (
	"errors"
	"fmt"

	"sigs.k8s.io/yaml"
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
