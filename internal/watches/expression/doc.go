// Package expression compiles and evaluates the CEL expressions of a watches file. It
// defines the available functions, limits the cost of an evaluation, and formats errors on
// one line.
//
// Evaluations are deterministic: the environment has no clock, and maps are iterated in the
// order of their keys. Expressions are untrusted, so that an evaluation never panics.
package expression
