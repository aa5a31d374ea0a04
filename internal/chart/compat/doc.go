// Package compat tells what a new CustomResourceDefinition does to those who
// use the old one.
//
//	for _, change := range compat.Compare(old, new) {
//		if change.Breaking {
//			fmt.Println(change)
//		}
//	}
//
// A change is breaking if a custom resource that was good under the old
// definition may be refused under the new one, or lose a field, or set a
// property that the new one knows no more. The latter does stored objects no
// harm: Breaks, which is asked before a definition is replaced, leaves it out.
//
// # What holds
//
// If the API server, by the old definition, takes an object and keeps it as it
// is, and does not by the new one, then there is a breaking change. The reverse
// does not hold: whether one pattern takes all that another takes cannot be
// computed, so that a different pattern counts as breaking.
//
// One thing does not count. An object that keeps unknown fields may hold
// anything under a key that is not declared. Declaring the key is no breaking
// change, or charts could not get new values.
//
// sigs.k8s.io/crdify also compares definitions, but it does not promise this
// property: it looks for a list of known changes, each in one field. A property
// test here checks the promise against the API server's own validation.
package compat
