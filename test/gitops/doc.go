// Package gitops evaluates the files in docs/guides/gitops as GitOps tools do: the
// health script with Argo CD's interpreter and the libraries that Argo CD
// opens, and the health expressions with Flux's CEL in Flux's order.
//
// The tests in this package use constructed statuses; those in test/e2e use
// statuses that an operator writes. They also check that docs/guides/gitops.md
// shows the files unchanged or links to them.
package gitops
