// Package inventory holds the state of the objects that releases own. It detects drift,
// and computes the health of a release, without requests to the API server.
//
// Watches holds a watch for each kind that some release needs (watches.go, watch.go). The
// caches hold metadata only, or the whole object where its health is read from the
// object; transform.go reduces both to an apply.State and a Health. A kind that cannot be
// watched affects no other kind (unwatched.go).
//
// Index holds the live state of each object, from the watches and from the writes of this
// process, and the state that each owner expects, from its last apply (index.go). If the
// two differ, the object has drifted (drift.go). What is expected is lost when the process
// ends. The release record has a digest of it: a new process expects the objects that it
// finds if they have this digest, and applies all of them once if not.
//
// An owner label alone does not prove ownership, see claims.go. Jobs that Kubernetes
// deletes after their TTL are no drift, see jobs.go. Hooks and CRDs of crds/ are not part
// of the inventory.
package inventory
