package scaffold

import (
	"bytes"
	"errors"
	"unicode/utf8"
)

// newline returns what ends the lines of a text.
func newline(text []byte) string {
	if bytes.Contains(text, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// withNewline ends the last line of a text.
func withNewline(text []byte) []byte {
	if len(text) > 0 && text[len(text)-1] != '\n' {
		return append(bytes.Clone(text), newline(text)...)
	}
	return text
}

// offset returns where a line and a column, as YAML counts them, from 1 and in
// characters, are in a text.
func offset(text []byte, line, column int) int {
	at := 0
	for ; line > 1; line-- {
		end := bytes.IndexByte(text[at:], '\n')
		if end < 0 {
			return len(text)
		}
		at += end + 1
	}
	for ; column > 1 && at < len(text); column-- {
		_, size := utf8.DecodeRune(text[at:])
		at += size
	}
	return at
}

// lineEnd returns where the line of a position ends, before what ends it.
func lineEnd(text []byte, at int) int {
	end := bytes.IndexByte(text[at:], '\n')
	if end < 0 {
		return len(text)
	}
	end += at
	if end > at && text[end-1] == '\r' {
		end--
	}
	return end
}

// lineStart returns where the line of a position begins.
func lineStart(text []byte, at int) int { return bytes.LastIndexByte(text[:at], '\n') + 1 }

// nextLine returns where the line after that of a position begins.
func nextLine(text []byte, at int) int {
	end := bytes.IndexByte(text[at:], '\n')
	if end < 0 {
		return len(text)
	}
	return at + end + 1
}

// splice replaces a part of a text.
func splice(text []byte, from, to int, by string) []byte {
	out := make([]byte, 0, len(text)+len(by))
	out = append(out, text[:from]...)
	out = append(out, by...)
	return append(out, text[to:]...)
}

var errOpen = errors.New("a bracket or quote does not end")

// flowEnd returns where a list or map in brackets ends that begins at a
// position, after its closing bracket.
func flowEnd(text []byte, at int) (int, error) {
	depth := 0
	for at < len(text) {
		switch c := text[at]; c {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
			if depth == 0 {
				return at + 1, nil
			}
		case '"', '\'':
			// Inside of a plain text, a quote is a character as any other.
			if before := bytes.TrimRight(text[:at], " \t\r\n"); len(before) > 0 && bytes.IndexByte([]byte("[{,:"), before[len(before)-1]) >= 0 {
				end, err := quoteEnd(text, at)
				if err != nil {
					return 0, err
				}
				at = end
				continue
			}
		case '#':
			if at > 0 && bytes.IndexByte([]byte(" \t\n"), text[at-1]) >= 0 {
				at = lineEnd(text, at)
				continue
			}
		}
		at++
	}
	return 0, errOpen
}

// quoteEnd returns where a quoted text ends, after its closing quote.
func quoteEnd(text []byte, at int) (int, error) {
	quote := text[at]
	for at++; at < len(text); at++ {
		switch {
		case text[at] == '\\' && quote == '"':
			at++
		case text[at] == quote && quote == '\'' && at+1 < len(text) && text[at+1] == quote:
			at++
		case text[at] == quote:
			return at + 1, nil
		}
	}
	return 0, errOpen
}
