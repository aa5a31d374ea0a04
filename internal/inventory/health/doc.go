// Package health decides whether one object does what it is there for.
//
// Of takes an object as the API server returned it and gives a Result. It is
// pure: it makes no request and reads no clock. The first of these that applies
// decides:
//
//  1. the health rule that the watches entry has for the kind, in CEL (Rule);
//  2. the table of well-known kinds (table.go, known_*.go);
//  3. for Kubernetes' own workloads kstatus, with corrections (builtin.go);
//  4. for every other kind its conditions, phase and state (generic.go).
//
// Whatever a status holds, an evaluation ends without a panic. A status that
// cannot be read and a controller that has not reported are never failures:
// such a Result is OpenEnded, so that nothing is rolled back for it.
//
// One question cannot be answered from one object: how long to wait for a
// controller that has not reported. Result.At answers it from the time and from
// what other objects of the kind show.
package health
