package api

import (
	"fmt"
	"strings"
)

// Truncate shortens a text to a number of bytes. The result is valid UTF-8, and ends in an
// ellipsis if something was cut off.
func Truncate(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len("…")], "") + "…"
}

// Counted returns a number with a noun in singular or plural.
func Counted[N int | int64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// First joins the first texts, and counts the others.
func First(texts []string, limit int) string {
	if more := len(texts) - limit; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(texts[:limit], ", "), more)
	}
	return strings.Join(texts, ", ")
}
