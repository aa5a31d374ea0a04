// Package api holds the words that users of Chartwright see: annotation and
// label keys, the finalizer, condition types and reasons, event reasons, and
// the shape of a custom resource's status.
//
// Everything else in this module speaks in these words; nothing here knows how
// they come about. The package imports apimachinery alone, so that every other
// package may import it.
package api
