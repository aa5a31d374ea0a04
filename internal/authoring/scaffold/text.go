package scaffold

import (
	"bytes"
	"errors"
	"slices"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// newline returns the line ending of a text.
func newline(text []byte) string {
	if bytes.Contains(text, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// withNewline returns a text with a line ending after its last line.
func withNewline(text []byte) []byte {
	if len(text) > 0 && text[len(text)-1] != '\n' {
		return append(bytes.Clone(text), newline(text)...)
	}
	return text
}

// offset returns the offset of a line and a column. Both start at 1, and columns count
// characters, as in YAML nodes.
func offset(text []byte, line, column int) int {
	at := 0
	for ; line > 1; line-- {
		at = nextLine(text, at)
	}
	for ; column > 1 && at < len(text); column-- {
		_, size := utf8.DecodeRune(text[at:])
		at += size
	}
	return at
}

// lineEnd returns the end of the line that contains an offset, before its line ending.
func lineEnd(text []byte, at int) int {
	line, _, _ := bytes.Cut(text[at:], []byte("\n"))
	return at + len(bytes.TrimSuffix(line, []byte("\r")))
}

// lineStart returns the start of the line that contains an offset.
func lineStart(text []byte, at int) int { return bytes.LastIndexByte(text[:at], '\n') + 1 }

// nextLine returns the start of the line after the one that contains an offset.
func nextLine(text []byte, at int) int {
	line, _, _ := bytes.Cut(text[at:], []byte("\n"))
	return min(at+len(line)+1, len(text))
}

// splice replaces a part of a text.
func splice(text []byte, from, to int, by string) []byte {
	return slices.Concat(text[:from], []byte(by), text[to:])
}

var errOpen = errors.New("a bracket or quote is not closed")

// closedEnd returns the end of the value in brackets or quotes that starts at an offset:
// the first closing bracket or quote that completes a valid YAML value.
func closedEnd(text []byte, at int) (int, error) {
	// An alias is invalid without its anchor.
	text = bytes.ReplaceAll(text, []byte("*"), []byte("a"))
	closing := map[byte]byte{'[': ']', '{': '}', '"': '"', '\'': '\''}[text[at]]
	for end := at + 1; end < len(text); end++ {
		if text[end] != closing || closing == '\'' && end+1 < len(text) && text[end+1] == closing {
			continue
		}
		if yaml.Unmarshal(text[at:end+1], &yaml.Node{}) == nil {
			return end + 1, nil
		}
	}
	return 0, errOpen
}
