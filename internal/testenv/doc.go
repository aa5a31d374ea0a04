// Package testenv has helpers for tests. Start starts an API server. Whole and Part
// compare pages of docs/ with texts that are generated from code. "make generate" runs
// the tests with -update, which writes these pages. Oversized and ExpectRetained check how
// much of an object is kept in memory.
package testenv
