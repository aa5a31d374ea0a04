// Package apply writes and deletes objects at the API server. It does not depend on Helm.
//
// Client.Apply writes an object by server-side apply with the field manager
// api.FieldManager and with force: it overwrites conflicting fields, and does not touch
// fields that the chart does not render. Prepare makes an object fit for that, and adds
// the labels and annotations that name its owner.
//
// Every write has a precondition: an apply changes only the object with the UID in its
// Options, or creates an object that does not exist (client.go), and a deletion deletes only
// the object with the given UID (delete.go).
//
// AnswerOf returns what an error of the API server means, for all packages (answer.go). Repeats
// is the transport that repeats the requests of an action during an outage (repeat.go).
//
//   - client.go: Apply, DryRun and the reads. create.go: Create.
//   - prepare.go: changes to an object before it is sent.
//   - refusals.go, leftovers.go: changes to an object that the API server rejects, but
//     accepts from Helm's own patches.
//   - delete.go, replace.go: deletions, and new objects in place of those that cannot be changed.
//   - ownership.go: checks and ends the ownership of objects.
//   - fieldmanagers.go: takes over fields from other field managers, and hands them over.
//   - state.go: the state of an object, which is read from its metadata and detects drift.
//   - watch.go: waits for a state of an object.
package apply
