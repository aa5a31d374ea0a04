// Package reconcile serves one kind: it keeps the Helm release of each custom
// resource what the spec asks for.
//
// Reconciler.Reconcile goes through these phases:
//
//   - observe reads the cached custom resource, the index of release records, the
//     inventory of objects and the memory of this process into a snapshot;
//   - claimSignature and claimPosition reserve what only one custom resource can
//     get at a time: a slot for signing a record, and an upgrade in the rollout;
//   - package plan decides from the snapshot's Observation: a state and a step;
//   - applyEffects records what was found in metrics and memory;
//   - act carries the step out. Helm's actions run in a pool (package queue), not
//     in the reconciliation: it returns at once and runs again when the action
//     ends. conclude records how the action ended;
//   - report computes the whole status (package status) and patches it if it
//     differs.
//
// A reconciliation of a custom resource that is in sync makes no request.
package reconcile
