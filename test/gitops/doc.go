// Package gitops evaluates the files in docs/gitops like the GitOps tools: the health script
// with the interpreter and the libraries of Argo CD, and the health expressions with the CEL
// environment and in the order of Flux.
//
// The tests in this package use synthetic statuses, the tests in test/e2e those of an
// operator. They also check that docs/gitops.md shows the files unchanged.
package gitops
