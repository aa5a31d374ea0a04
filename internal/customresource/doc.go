// Package customresource reads custom resources without expanding their specs.
//
// A custom resource of a megabyte can hold hundreds of thousands of values, and
// as maps it takes a hundred times its size. Everybody who may write custom
// resources could so exhaust the memory of the operator. A packed custom
// resource therefore holds spec, status and every other field beside its
// metadata as JSON text, and the digest of that text. A custom resource that
// exceeds MaxBytes or MaxValues loses the text and keeps the digest.
//
// Where to start: Decoder.Decode packs one custom resource, ListWatch lists and
// watches packed custom resources one at a time, Client patches them, and Expand
// returns the content of a packed custom resource.
package customresource
