// Package boundedyaml limits what reading a YAML text from outside may cost.
//
// A YAML parser replaces each alias (*name) by the value of its anchor (&name).
// A text of a megabyte can so become gigabytes of values, or of JSON, before
// its reader can look at any of it. This package computes the size after that
// replacement without doing it, so that a text that is too large is refused
// before it is read.
//
// Where to start: Limits.Check refuses a text, ToJSON reads one, and Aliased
// returns what aliases add, for callers that keep a budget of their own.
package boundedyaml
