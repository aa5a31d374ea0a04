// Package catalog loads the kinds that an operator serves: for each entry of
// watches.yaml a Kind, with its chart loaded, its override values expanded, and its
// templates and expressions compiled.
//
// The watches file and the charts are embedded in the binary (FromFS) or in a folder on disk
// (FromFile). Charts are folders or .tgz archives, with paths relative to the watches file.
// All problems are reported at once, each with its file and line, before the operator
// accesses a cluster.
//
// FromFolder loads more kinds from a folder with charts, each with an optional kind.yaml. A
// problem of one chart does not affect the others.
package catalog
