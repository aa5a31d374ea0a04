// Package queue runs Helm actions concurrently with the reconciliations: at most one
// for each release, and at most as many at a time as the Pool has slots.
//
// semaphore.go decides which action gets a free slot: a semaphore with priorities,
// fair among namespaces and kinds, without starvation. pool.go runs the actions and
// ends them when the operator stops.
package queue
