package render

import (
	"fmt"
	"time"
)

// Limits are the limits of one render. Ordinary charts use less than a hundredth of each.
type Limits struct {
	// Steps is the number of function calls and iterations of range.
	Steps int
	// Memory is the size of all outputs and function results, in bytes.
	Memory int
	// Value is the size of one value or text, in bytes.
	Value int
	// Output is the total size of all files, in bytes.
	Output int
	// Tokens is the number of lines, keys and list items in all files, which are parsed
	// as YAML afterwards.
	Tokens int
	// Parse is the size of all texts that are parsed as templates, YAML, JSON or TOML, in
	// bytes.
	Parse int
	// Depth is the nesting of template calls and of values.
	Depth int
	// Time is the duration of the render, without the time that it waits.
	Time time.Duration
	// LargeSteps, LargeMemory and LargeTime are the thresholds above which a render is
	// large and must be the only large one.
	LargeSteps, LargeMemory int
	LargeTime               time.Duration
}

// Defaults returns the limits of the operator. For comparison, a stored release record has
// at most 1 MiB, compressed.
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

// LimitError is the error of a render that exceeded a limit.
type LimitError struct {
	// File is the template file that was being rendered.
	File string
	// Exceeded describes the limit.
	Exceeded string
}

// Error returns the limit, and advice for users.
func (e *LimitError) Error() string {
	return fmt.Sprintf("%s was stopped: %s; check the values for large numbers, long lists, or templates that repeat output", e.File, e.Exceeded)
}

// mebibytes formats a size for users.
func mebibytes(bytes int) string {
	if bytes < 1<<20 {
		return fmt.Sprintf("%d bytes", bytes)
	}
	return fmt.Sprintf("%d MiB", bytes>>20)
}
