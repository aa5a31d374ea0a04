package scaffold

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/watches"
)

// watchesFile is a watches file as text. Changes edit the text, to preserve comments,
// order and layout. The YAML nodes only provide positions. Every change is verified: the
// new text is parsed, and the other entries must not differ.
type watchesFile struct {
	name    string
	text    []byte
	list    *yaml.Node
	entries []watches.Watch
}

// readWatches parses a watches file. An empty file, or one with only comments, has no
// entries.
func readWatches(name string, text []byte) (*watchesFile, error) {
	f := &watchesFile{name: name, text: text}
	var document yaml.Node
	switch err := yaml.NewDecoder(bytes.NewReader(text)).Decode(&document); {
	case errors.Is(err, io.EOF):
		return f, nil
	case err == nil && document.Content[0].Tag == "!!null" && document.Content[0].Value == "":
		return f, nil
	case err == nil:
		f.list = document.Content[0]
	}
	var err error
	f.entries, err = watches.Parse(name, text)
	return f, err
}

// index returns the index of the entry of a kind, or -1.
func (f *watchesFile) index(kind schema.GroupKind) int {
	return slices.IndexFunc(f.entries, func(w watches.Watch) bool { return w.GVK().GroupKind() == kind })
}

// textOf returns the lines of an entry in the file.
func (f *watchesFile) textOf(kind, group string) string {
	at := f.index(schema.GroupKind{Group: group, Kind: kind})
	if at < 0 {
		return ""
	}
	from, to := offset(f.text, f.entries[at].Line, 1), len(f.text)
	if at+1 < len(f.entries) {
		to = offset(f.text, f.entries[at+1].Line, 1)
	}
	lines := strings.Split(string(unixLines(f.text[from:to])), "\n")
	for len(lines) > 1 {
		// Comments after the entry belong to the next one.
		if last := strings.TrimSpace(lines[len(lines)-1]); last != "" && last[0] != '#' {
			break
		}
		lines = lines[:len(lines)-1]
	}
	return strings.Join(lines, "\n") + "\n"
}

// add returns the file with an additional entry at the end.
func (f *watchesFile) add(e entry) ([]byte, error) {
	text, err := f.added(e)
	if err != nil {
		return nil, err
	}
	alone, err := e.flow()
	if err != nil {
		return nil, err
	}
	expected, err := watches.Parse(f.name, []byte("["+alone+"]"))
	if err != nil {
		return nil, err
	}
	return text, f.expect(text, append(slices.Clone(f.entries), expected...), e)
}

func (f *watchesFile) added(e entry) ([]byte, error) {
	nl := newline(f.text)
	switch {
	case f.list == nil:
		return f.appended(e, "")
	case f.list.Style&yaml.FlowStyle == 0:
		return f.appended(e, strings.Repeat(" ", f.list.Column-1))
	}
	last := f.list
	if len(f.entries) > 0 {
		last = f.list.Content[len(f.entries)-1]
	}
	from := offset(f.text, last.Line, last.Column)
	to, err := closedEnd(f.text, from)
	if err != nil {
		return nil, fmt.Errorf("%s:%d: %w", f.name, last.Line, err)
	}
	if len(f.entries) > 0 {
		text, err := e.flow()
		// Directly after the last entry, because a comma may follow.
		return splice(f.text, to, to, ","+nl+"  "+text), err
	}
	// Other text on the line of the empty list, such as "---" or a comment, is moved
	// before the entry.
	start, end := lineStart(f.text, from), lineEnd(f.text, to)
	block, err := e.block("", nl)
	if err != nil {
		return nil, err
	}
	lines := []string{string(f.text[start:from]), string(f.text[to:end]), strings.TrimSuffix(block, nl)}
	lines = slices.DeleteFunc(lines, func(line string) bool { return strings.TrimSpace(line) == "" })
	for i := range lines[:len(lines)-1] {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return splice(f.text, start, end, strings.Join(lines, nl)), nil
}

// appended returns the file with an entry in block style at the end.
func (f *watchesFile) appended(e entry, indent string) ([]byte, error) {
	nl := newline(f.text)
	block, err := e.block(indent, nl)
	if err != nil {
		return nil, err
	}
	text := withNewline(f.text)
	at := len(text)
	// The document may end with "...".
	if trimmed := bytes.TrimRight(text, " \t\r\n"); bytes.HasSuffix(trimmed, []byte("\n...")) {
		at = len(trimmed) - len("...")
	}
	if before := bytes.TrimSuffix(text[:at], []byte(nl)); len(before) > 0 && before[len(before)-1] != '\n' {
		block = nl + block
	}
	return splice(text, at, at, block), nil
}

// change returns the file with other values for some keys of an entry.
func (f *watchesFile) change(index int, fields entry) ([]byte, error) {
	file, expected := f, slices.Clone(f.entries)
	for _, one := range fields {
		text, err := file.changed(index, one)
		if err != nil {
			return nil, fmt.Errorf("%w\n%s", err, byHand(f.entries[index].Line, fields))
		}
		if file, err = readWatches(f.name, text); err != nil {
			return nil, fmt.Errorf("%w\n%s", err, byHand(f.entries[index].Line, fields))
		}
		if err := setField(&expected[index], one); err != nil {
			return nil, err
		}
		if !watches.OperatorSDKKey(one.key) {
			expected[index].Allow.Everything = false
		}
	}
	return file.text, f.expect(file.text, expected, fields)
}

// setField sets a key of an entry. It may overwrite a list that the entry shares with a
// copy.
func setField(w *watches.Watch, one field) error {
	text, err := entry{one}.flow()
	if err != nil {
		return err
	}
	if one.key == "versions" {
		// Unmarshal would keep fields of the previous items.
		w.Versions = nil
	}
	return json.Unmarshal([]byte(text), w)
}

// expect returns an error unless a text contains the expected entries.
func (f *watchesFile) expect(text []byte, expected []watches.Watch, e entry) error {
	got, err := watches.Parse(f.name, text)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(withoutLines(got), withoutLines(expected)) {
		return fmt.Errorf("%s: the layout of the file does not allow an automatic edit\n%s", f.name, byHand(0, e))
	}
	return nil
}

// byHand describes an edit that the user must make.
func byHand(line int, e entry) string {
	how := "add this by hand, and run the command again:\n"
	text, err := e.block("", "\n")
	if line > 0 {
		how = fmt.Sprintf("change the entry on line %d by hand:\n", line)
		text, err = e.lines("  ", "\n")
	}
	if err != nil {
		return err.Error()
	}
	return how + text
}

func withoutLines(entries []watches.Watch) []watches.Watch {
	plain := slices.Clone(entries)
	for i := range plain {
		plain[i].Line, plain[i].Lines, plain[i].OperatorSDK = 0, nil, false
	}
	return plain
}
