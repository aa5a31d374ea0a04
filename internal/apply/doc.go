// Package apply writes and deletes objects at the API server. It does not know Helm.
//
// Client.Apply writes an object by server-side apply with the field manager
// api.FieldManager, and by force: the cluster gets what the chart renders, and keeps the
// fields that others add. Prepare makes an object fit for that, and adds the labels and
// annotations that name its owner.
//
//   - client.go: Apply, DryRun, Create and the reads.
//   - prepare.go: what is changed about an object before it is sent.
//   - refusals.go, leftovers.go: what is changed after the API server has refused it,
//     where Helm's own patches would succeed.
//   - ownership.go: who owns an object. Delete checks it, and names the UID of the object
//     to the API server, so that no successor is deleted.
//   - fieldmanagers.go: fields that other managers hold are taken over, or handed over.
//   - state.go: what the metadata of an object shows, by which drift is detected.
//   - watch.go: waiting for a state of an object.
package apply
