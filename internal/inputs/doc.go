// Package inputs remembers who uses what, in both directions: what a custom
// resource uses, so that it can be forgotten with it, and who uses a thing, so
// that a change of it calls for them.
package inputs
