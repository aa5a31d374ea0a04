// Package compat compares two versions of a CRD and classifies each change as
// breaking or not.
//
//	for _, change := range compat.Compare(old, new) {
//		if change.Breaking {
//			fmt.Println(change)
//		}
//	}
//
// A change is breaking if a custom resource that was valid under the old CRD may be
// rejected under the new one, may lose a field, or may set a property that the new
// schema no longer declares. An undeclared property does not harm stored objects, so
// Breaks, which runs before a CRD is replaced, ignores this case.
//
// # Guarantee
//
// If the API server accepts an object under the old CRD and stores it unchanged, and
// does not do so under the new CRD, Compare returns a breaking change. The reverse
// does not hold. For example, any different pattern counts as breaking, because it
// cannot be computed whether the new pattern accepts all strings that the old one
// accepted.
//
// There is one exception. An object that preserves unknown fields can have any value
// at an undeclared key. Declaring the key is not a breaking change, because otherwise
// charts could not add values.
//
// sigs.k8s.io/crdify also compares CRDs, but it looks for a list of known changes in
// single fields and does not give this guarantee. A property test checks the
// guarantee against the API server's own validation.
package compat
