// Package testserver finds the API server that tests run against: a real one,
// of the programs that `make cluster-binaries` builds.
package testserver
