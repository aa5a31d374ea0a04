// Package customresource reads custom resources without expanding their specs.
//
// A custom resource of a megabyte can hold hundreds of thousands of values, and needs a
// hundred times its size as maps, so that users could exhaust the memory of the operator.
// Therefore a packed custom resource holds all fields except its metadata as JSON text,
// and the digest of that text. A custom resource that exceeds MaxBytes or MaxValues has only
// the digest.
//
// Decoder.Decode packs one custom resource, ListWatch lists and watches packed custom
// resources one at a time, Patcher patches them, and Expand returns the content of a packed
// custom resource.
package customresource
