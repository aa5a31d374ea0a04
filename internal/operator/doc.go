// Package operator wires the parts to controller-runtime's manager.
//
// One manager holds: the watch of release records, the watches of what
// releases own, of what values come from and of custom resource definitions,
// the pool that runs Helm's actions, and for each kind a controller with
// its caches. A kind starts when its CRD is there; until then it holds up
// nobody else (see kinds).
//
// Namespaces are areas, each with watches of its own; a kind's service joins what
// it may watch of them (areas, service). All of that runs on a standby, too, and
// the fence keeps it from writing (standby, fence).
//
// How every kind is stands on a board, which the readiness probe and the metrics
// read: what has begun writes there (kinds), and so do the folders that are no
// kinds (catalog.Broken), the rules that the operator's role lacks (rights) and
// the definitions that could not be installed (definitions.go). An admin finds
// the same in the log and in events on the operator's Pod.
//
// Probes are for everybody (probes.go), and metrics for who may read them
// (serving.go).
package operator
