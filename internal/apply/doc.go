// Package apply brings objects to the API server and takes them away again. It
// knows nothing of Helm.
//
// Objects are written by server-side apply under one field manager
// (api.FieldManager) and by force, so that what a chart says is what the
// cluster holds, and what others add beside it stays. Prepare makes an object
// fit for that and marks whose it is: labels, annotations and, where garbage
// collection may help, an ownerReference, all in top-level metadata only.
//
// Nothing that belongs to somebody else is deleted: Delete looks first, and
// names the object's UID to the server so that no successor is hit.
package apply
