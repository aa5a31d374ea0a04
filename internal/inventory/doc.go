// Package inventory knows the objects that releases own, and which of them
// somebody has damaged, without asking the API server.
//
// Dependents are watched through caches of their own that are selected by the
// operator label: as metadata only, or whole where they have a status to be read
// (see shapeOf). Each is compacted to an apply.State (see compact). Watches come
// and go with the releases that need them (Watches).
//
// The Index holds two things: what the objects are, from the watches and from
// what this process has just written, and what each owner's objects are
// expected to be, from the last time they were applied. Where the two differ
// there is Drift. What is expected is lost with the process; a digest of it is
// on the release record, so that a new process takes what it finds for what is
// expected where the digest agrees, and applies everything once where not.
//
// Hooks and crds/ are no part of it: they belong to an action, or to nobody.
package inventory
