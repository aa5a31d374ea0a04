package boundedyaml

import (
	"errors"
	"io"
	"strings"
	"testing"

	goyaml "sigs.k8s.io/yaml/goyaml.v3"
)

// FuzzCheck_AgreesWithExpansion compares Check with a slow implementation, which replaces each
// alias by the value of its anchor.
func FuzzCheck_AgreesWithExpansion(f *testing.F) {
	for _, text := range []string{
		bomb(1), bomb(2), bomb(3), "a: &x 1\nb: *x\n", "a: &x {b: 1}\nc: {<<: *x}\n", "? &a [b]\n: *a\n", "&a a: *a\n", "a: &a [*a]\n",
		"- &x\n- *x\n- [*x, *x]\n", "a: &x " + strings.Repeat("y", 900) + "\nb: [" + strings.Repeat("*x,", 9) + "*x]\n",
		"a: &x 1\n---\nb: &x [1, 2]\nc: *x\n", "a: !!binary &b aGVsbG8=\nc: *b\n", "# &a *a\nb: '*c' \n", "%YAML 1.2\n---\n- &a a\n- *a\n...\n", "a: |\n  &x *x\nb: \"\\\n  x\"\n",
	} {
		f.Add(text)
	}
	limits := Limits{Bytes: 4096, Values: 256}
	f.Fuzz(func(t *testing.T, text string) {
		err := limits.Check(text)
		slow, valid := expand(text, 16*(limits.Bytes+limits.Values))
		switch {
		case err == nil && valid:
			// Tokens counts a map, and each key together with its value.
			if slow.all.Bytes > limits.Bytes || slow.all.Values > 4*limits.Values {
				t.Errorf("accepted %+v:\n%q", slow.all, text)
			}
		case errors.Is(err, ErrTooLarge) && valid && !slow.cut:
			bytes := len(text) + slow.all.Bytes - slow.plain.Bytes
			values := Tokens(text) + slow.all.Values - slow.plain.Values
			if bytes <= limits.Bytes && values <= limits.Values {
				t.Errorf("rejected %d bytes and %d values:\n%q", bytes, values, text)
			}
		case errors.Is(err, ErrInvalid) && valid:
			t.Errorf("rejected valid YAML:\n%q", text)
		}
	})
}

// expansion is the size of a text whose aliases are replaced.
type expansion struct {
	// all includes the values of aliases, and plain does not.
	all, plain Size
	// room is the remaining limit for the expansion, and cut is true if it was exceeded.
	room int
	cut  bool
}

// expand replaces the aliases of a text until a limit. It reports whether the text is valid
// YAML.
func expand(text string, room int) (*expansion, bool) {
	e := &expansion{room: room}
	for documents := goyaml.NewDecoder(strings.NewReader(text)); ; {
		var document goyaml.Node
		if err := documents.Decode(&document); errors.Is(err, io.EOF) {
			return e, true
		} else if err != nil {
			return e, false
		}
		e.write(&document, nil)
	}
}

// write counts a node and its descendants. The parameter within lists its ancestors.
func (e *expansion) write(node *goyaml.Node, within []*goyaml.Node) {
	inAlias := false
	for _, outer := range within {
		if outer == node {
			// Parsers reject an anchor that contains itself.
			return
		}
		inAlias = inAlias || outer.Alias != nil
	}
	if e.room -= 1 + len(node.Value); e.room < 0 {
		e.cut = true
		return
	}
	own := Size{Bytes: len(node.Value), Values: 1}
	if node.Alias != nil {
		own.Bytes = 0
	}
	if !inAlias {
		e.plain = e.plain.plus(own)
	}
	within = append(within, node)
	if node.Alias != nil {
		e.write(node.Alias, within)
		return
	}
	e.all = e.all.plus(own)
	for _, below := range node.Content {
		e.write(below, within)
	}
}
