// Package gitops evaluates what docs/gitops gives to GitOps tools, as the tools
// themselves do: the health script by the interpreter of Argo CD and with the
// libraries that it opens, the health expressions by the CEL of Flux and in the
// order in which Flux takes them.
//
// The tests here go over statuses that are made up, those of test/e2e over what
// an operator writes. They keep docs/gitops.md equal to the files that it shows.
package gitops
