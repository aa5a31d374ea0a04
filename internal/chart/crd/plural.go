package crd

import "strings"

// DefaultPlural returns the plural of a kind whose watches entry gives none.
func DefaultPlural(kind string) string { return plural(strings.ToLower(kind)) }
