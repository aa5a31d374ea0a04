// Package architecture contains the tests of rules about the repository itself
// that golangci-lint cannot check: the order of packages, package comments,
// transitive imports, and the tests that the documentation of security names.
package architecture
