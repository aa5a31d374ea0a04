// Package engine is the only package that imports Helm. It names what the operator uses of Helm,
// so that no other package changes with a major version of Helm.
//
// helm3.go and actions3.go are built by default, helm4.go and actions4.go with the build tag helm4.
// Most names are aliases: other packages use their fields and methods as Helm documents them. Kube
// and Config replace what the major versions do not have in common. No file here decides anything:
// a difference that an adapter cannot hide is explained in docs/reference/compatibility.md.
package engine
