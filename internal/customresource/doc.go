// Package customresource reads custom resources without expanding their specs.
//
// A custom resource of a megabyte can hold hundreds of thousands of values, and needs a
// hundred times its size as maps, so that users could exhaust the memory of the operator.
// Therefore a packed custom resource holds all fields except its metadata as JSON text,
// and the digest of that text. A custom resource that exceeds MaxBytes or MaxValues has only
// the digest. A cache holds no content above a few kilobytes: such a custom resource is
// partial, and is read from the API server when the content is needed.
//
// Decoder.Decode packs one custom resource, ListWatch lists and watches packed custom
// resources one at a time, Client completes and patches them, and Expand returns the content of
// a packed custom resource.
package customresource
