// Package reconcile reconciles the custom resources of one kind: it makes the Helm
// release of each custom resource follow its spec.
//
// Reconciler.Reconcile goes through these phases:
//
//   - observe reads the cached custom resource, the index of release records, the
//     inventory of objects and the memory of this process into a snapshot;
//   - claimSignature and claimPosition reserve what only one custom resource can
//     get at a time: a slot for signing a record, and an upgrade in the rollout;
//   - package plan decides on a state and a step from the snapshot's Observation;
//   - applyEffects records what was found in metrics and memory;
//   - act carries out the step. Helm's actions run in a pool (package queue), not in
//     the reconciliation, which returns at once and runs again when the action has
//     ended. conclude records how the action ended;
//   - report computes the whole status (package status) and patches it if it
//     differs.
//
// The reconciliation of a custom resource that is in sync makes no request.
package reconcile
