// Package operator wires the parts to controller-runtime's manager.
//
// One manager holds: the watch of release records, the watches of what
// releases own, of what values come from and of custom resource definitions,
// the pool that runs Helm's actions, and for each kind a cache and a
// controller. A kind starts when its CRD is there; until then it holds up
// nobody else (see kinds).
package operator
