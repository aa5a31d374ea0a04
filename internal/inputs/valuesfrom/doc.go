// Package valuesfrom reads the Secrets and ConfigMaps that values come from, beside
// the spec of a custom resource.
//
// Their metadata is watched, by an informer a kind that feeds the Store through
// Handler; the content is read, by one request, when a custom resource uses an
// object whose resourceVersion is not the one in memory. So a pass over a
// custom resource that is in sync makes no request, and nothing is kept in
// memory but the keys that are used. The Store knows who uses what, and tells
// of a change those alone.
//
// What a Secret holds gets into the values and nowhere else. Errors name the
// object, the key and the line, and quote nothing; Secrets are the texts that
// others, who render these values, have to keep out of what they say.
package valuesfrom
