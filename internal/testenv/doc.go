// Package testenv holds pages of docs/ to the code, for tests. What follows from
// the code is written by `make generate`, which runs those tests with -update.
package testenv
