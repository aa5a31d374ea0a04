// Package values computes the values of a chart from the spec of a custom resource.
//
// The spec contains the values. For missing values the chart's defaults apply, and the
// overrides of the watches entry have precedence over the spec. Numbers are normalized,
// so that 1 and 1.0 are the same value. Digest returns the same digest for equal values.
// Templates get other numbers than digests: see Numbers.
package values
