// Package operator connects the parts of the operator to controller-runtime's
// manager.
//
// Start at operator.go: New creates every part with its dependencies, and adds
// those that run to the manager. kindmanager.go has the event loop, and kindstate.go starts
// each kind when its CRD is served, and replaces and stops kinds when their sources
// (packages kindset and chartsdir) change. kind.go serves one kind: it fills a cache for each
// namespaceScope (scope.go), and adds the controller (controller.go). predicates.go
// filters irrelevant changes. watch.go, sources.go, managedresources.go and observed.go start
// the watches on which reconciles depend.
//
// All watches also run on a standby. Package leader keeps a standby from writing.
// Package readiness holds the state of every kind for /readyz and the metrics,
// package permissions finds missing RBAC rules, package crdwatch watches and
// installs CRDs, and package signingkey manages the key that signs release records.
package operator
