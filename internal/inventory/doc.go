// Package inventory holds the state of the objects that releases own. It detects drift
// and computes the health of a release without requests to the API server.
//
// Watches holds one watch for each kind that a release needs (watches.go, watch.go). The
// caches hold only the metadata of an object, or the whole object if its health depends
// on more than metadata; transform.go reduces both to an apply.State and a Health. If a
// kind cannot be watched, all other kinds are watched all the same (unwatched.go).
//
// Index holds the live state of each object, which it gets from the watches and from the
// writes of this process, and the state that each owner expects, which it gets from the
// last apply (index.go). If the two differ, the object has drifted (drift.go). The
// expected state is lost when the process ends, but the release record has a digest of
// it. A new process compares the digest with the live objects: if it matches, the live
// state becomes the expected state; if not, the process applies all objects once.
//
// An owner label does not prove ownership, see claims.go. The deletion of
// a Job by Kubernetes after its TTL is not drift, see jobs.go. Hooks and the CRDs in crds/ are not
// part of the inventory.
package inventory
