// Package leader keeps a process that does not hold the leader election lease
// from writing.
//
// The Fence wraps the transports of the operator's clients: CheckLease refuses
// writes, and ObserveLease follows the lease through the requests of the leader
// election itself.
package leader
