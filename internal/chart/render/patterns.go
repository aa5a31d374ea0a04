package render

import (
	"regexp/syntax"
	"strings"
)

// bytesOfInstruction is the memory per instruction while a regular expression is compiled.
const bytesOfInstruction = 64

// match is called before a text is searched by a regular expression. The time depends on
// the sizes of both.
func (b *budget) match(pattern, text string) {
	size := len(pattern) + 1
	if strings.Contains(pattern, "{") {
		parsed, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil {
			// The function returns the error.
			return
		}
		size = instructions(parsed)
		b.want("a regular expression", float64(size)*bytesOfInstruction)
	}
	b.compareAll(size, len(text)+1, 1024)
}

// instructions estimates the number of instructions of a compiled pattern, which contains
// a copy of each repeated part per repetition. The parser limits repetitions and nesting
// to a thousand.
func instructions(pattern *syntax.Regexp) int {
	size := 1 + len(pattern.Rune)
	for _, part := range pattern.Sub {
		size += instructions(part)
	}
	if pattern.Op == syntax.OpRepeat {
		size *= max(1, pattern.Min, pattern.Max)
	}
	return size
}
