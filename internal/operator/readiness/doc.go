// Package readiness reports whether the operator is ready, and the state of every
// kind.
//
// checker.go has the Checker, into which the parts of the operator write the
// state of each kind, and which the readiness probe and the metrics read.
// probes.go serves it as /readyz, beside /healthz.
package readiness
