// Package boundedyaml limits the size of untrusted YAML before it is parsed.
//
// A YAML parser replaces each alias (*name) by the value of its anchor (&name), so that a
// text of one megabyte can become gigabytes of values or JSON. This package computes the
// resulting size without replacing aliases.
//
// Limits.Check rejects a text that is too large, ToJSON converts a text within limits, and
// Aliased returns the size that aliases add, for callers with their own limits.
package boundedyaml
