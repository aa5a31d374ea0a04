// Package engine is the only package that imports Helm. It names what the operator uses of Helm,
// so that no other package changes with a major version of Helm.
//
// Most names are aliases: other packages use their fields and methods as Helm documents them. Kube
// and Config replace what the major versions do not have in common.
package engine
