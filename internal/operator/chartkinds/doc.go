// Package chartkinds serves the kinds that ChartKinds define.
//
// controller.go watches ChartKinds and has one queue for them. reconcile.go has the steps
// for one ChartKind: check the spec, pull the chart (pull.go), load it (load.go), install the CRD, add the
// kind to the set of kinds, and report (report.go). deletion.go keeps a deleted ChartKind
// until its custom resources are deleted, which counter.go counts. credentials.go reads Secrets.
//
// Every replica pulls charts and adds kinds, so that the caches of a standby are filled.
// Only the leader writes: status, finalizers, events and CRDs.
//
// What is served never depends on the status. After a restart, the operator serves the
// charts in the cache of package chartcache first, and then checks for newer ones.
package chartkinds
