// Package catalog loads the kinds that an operator serves: for each entry of
// watches.yaml a Kind, with its chart loaded, its override values expanded, and its
// templates and expressions compiled.
//
// The watches file and the charts come from one of two sources, the binary
// itself (FromFS) or a folder on disk (FromFile). Charts are folders or .tgz
// archives, with paths relative to the watches file. Whatever is wrong is
// reported at once, each problem with its file and line, and before anything
// touches a cluster.
//
// FromFolder makes more kinds, of a folder that charts are dropped into, each
// with a kind.yaml. There one that is wrong leaves the others alone.
package catalog
