// Package rollout says which custom resources of a kind are upgraded next when
// the kind's chart has changed, as when the operator's image is a new one.
//
// A Queue knows the position of each custom resource: on the new chart or on its way
// there, failed, or waiting. It lets those that wait go in their order, at most
// so many at a time. One that has failed stops the others of its namespace, and
// failures in several namespaces stop all (Limits). All of it is derived from
// what the custom resources and their releases are; nothing is stored, and a
// Queue that begins anew comes to the same answers when it has seen them all.
//
// It is pure: plain data in, plain data out. Package reconcile tells it what it
// sees, and calls for another pass over those that it names.
package rollout
