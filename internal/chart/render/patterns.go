package render

import (
	"regexp/syntax"
	"strings"
)

// bytesOfInstruction is what an instruction of a regular expression takes while
// it is compiled.
const bytesOfInstruction = 64

// match is called before a text is searched by a regular expression, which
// takes as long as the two are large.
func (b *budget) match(pattern, text string) {
	size := len(pattern) + 1
	if strings.Contains(pattern, "{") {
		parsed, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil {
			// The function says so.
			return
		}
		size = instructions(parsed)
		b.want("a regular expression", float64(size)*bytesOfInstruction)
	}
	b.compareAll(size, len(text)+1, 1024)
}

// instructions is about how many a pattern is compiled to: what is repeated
// stands there as often. The parser lets nothing be repeated more than a
// thousand times, all in all, nor be nested deeper than that.
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
