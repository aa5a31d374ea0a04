// Package metrics holds the operator's own metrics, beside those that
// controller-runtime gives. Their labels are bounded: by kind, never by custom
// resource.
package metrics
