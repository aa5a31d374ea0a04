// Package status computes the status of a custom resource from a Snapshot: the
// conditions, the history, the answers to requests and the kind's own fields.
//
// The package is pure: it reads nothing from the cluster and keeps no state. Package
// reconcile fills in the Snapshot and sends the patch that Patch returns.
//
// Where to start: Compute returns the whole status. To add a condition, add it to
// Compute and to its order. The condition Ready is in ready.go.
package status
