// Package expression is what all CEL expressions of a watches file share: the
// functions that they may use, a limit on what one evaluation may cost, and
// errors in one line.
//
// Equal inputs give equal results: the environment has no clock, and maps are
// iterated in the order of their keys. An expression is untrusted input, so
// that an evaluation never panics.
package expression
