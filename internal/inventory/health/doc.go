// Package health decides whether one object is ready.
//
// Evaluate takes an object as the API server returned it and returns a Result. It is
// pure: it sends no request and reads no clock. The first of these that applies decides:
//
//  1. the health rule in watches.yaml for the kind, in CEL (rule.go);
//  2. the table of well-known kinds (table.go, known.go);
//  3. kstatus for built-in workloads, with corrections (builtin.go);
//  4. the conditions, phase and state of every other kind (conditions.go).
//
// Evaluate does not panic, whatever the status contains. A status that cannot be read is
// never a failure, and neither is a missing report of the controller: the Result is
// OpenEnded, so that it causes no rollback.
//
// How long to wait for the report of a controller depends on more than the object. Result.At decides it by the time and by the other objects of the kind.
package health
