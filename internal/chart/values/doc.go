// Package values turns the spec of a custom resource into the values that its
// chart is rendered with.
//
// The spec is the values: absent, null or empty, the chart's defaults hold.
// The overrides of the watches entry win over the spec. Numbers are made equal
// whichever way they were written, so that 1 and 1.0 are one value and render
// alike, and Digest tells whether two sets of values are the same.
package values
