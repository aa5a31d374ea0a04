// Package reconcile serves one kind: it keeps the Helm release of each custom
// resource what the spec asks for.
//
// A pass goes observe → decide → act → report, each in its own file:
//
//   - observe reads memory only, the cached custom resource, the index of
//     release records and the inventory of objects, and turns them into plain
//     data;
//   - package decide tells the state and the next step;
//   - act carries the step out. What Helm does runs in a Pool and not in the
//     pass: the pass returns at once and is called again when the action ends;
//   - report computes the whole status and patches it if it differs.
//
// A pass over a custom resource that is in sync makes no request.
package reconcile
