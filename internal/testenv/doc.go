// Package testenv helps tests. It starts API servers (Start), and compares pages of
// docs/ with the code that they describe (Whole, Part). "make generate" runs the tests
// with -update, which writes those pages instead.
package testenv
