// Package readiness holds the state of every kind, and reports whether the operator is ready.
//
// checker.go has the Checker: the parts of the operator set the state of each kind, and the
// readiness probe and the metrics read it. probes.go serves /readyz and /healthz.
package readiness
