// Package testenv has helpers for tests. Start starts an API server. Whole and Part
// compare pages of docs/ with texts that are generated from code. "make generate" runs
// the tests with -update, which writes these pages.
package testenv
