package render

import (
	"fmt"
	"time"
)

// Limits are what one render may cost. Ordinary charts stay below a hundredth
// of each.
type Limits struct {
	// Steps are calls of functions and turns of range.
	Steps int
	// Memory is of all that is written and that functions return, in bytes.
	Memory int
	// Value is the size of one value or text, in bytes.
	Value int
	// Output is the size of all files together, in bytes.
	Output int
	// Tokens are lines, keys and items of lists in all files together, which
	// are read as YAML afterwards.
	Tokens int
	// Parse is the size of all texts that are parsed as templates, YAML, JSON
	// or TOML, in bytes.
	Parse int
	// Depth is how deeply templates may call each other, and values be nested.
	Depth int
	// Time is for all, without the time that was waited.
	Time time.Duration
	// LargeSteps and LargeMemory are where a render is large and has to be the
	// only one that is.
	LargeSteps, LargeMemory int
	LargeTime               time.Duration
}

// Defaults are the limits of the operator. A release that is stored has at most
// 1 MiB, packed.
func Defaults() Limits {
	return Limits{
		Steps:       1_000_000,
		Memory:      128 << 20,
		Value:       16 << 20,
		Output:      16 << 20,
		Tokens:      400_000,
		Parse:       16 << 20,
		Depth:       1000,
		Time:        30 * time.Second,
		LargeSteps:  100_000,
		LargeMemory: 8 << 20,
		LargeTime:   time.Second,
	}
}

// LimitError tells which limit a render was stopped by.
type LimitError struct {
	// File is the template file that was being rendered.
	File string
	// Exceeded says what was too much, and what there may be.
	Exceeded string
}

// Error says what to do, too.
func (e *LimitError) Error() string {
	return fmt.Sprintf("%s was stopped: %s; look for large numbers, long lists or templates in the values that make the chart repeat something", e.File, e.Exceeded)
}

// mebibytes writes a size for people.
func mebibytes(bytes int) string {
	if bytes < 1<<20 {
		return fmt.Sprintf("%d bytes", bytes)
	}
	return fmt.Sprintf("%d MiB", bytes>>20)
}
