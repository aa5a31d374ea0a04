// Package valuesfrom reads the objects of valuesFrom, whose content becomes values of a
// release in addition to the spec.
//
// One informer per kind watches their metadata and feeds the Store through Handler. The
// Store reads an object, by one request, when a custom resource uses it and the version in
// memory is outdated. Therefore a reconciliation of a custom resource that is in sync makes
// no request, and the Store keeps only the keys and the results of expressions that are used.
// It notifies only the users of a changed object.
//
// The content of a Secret becomes part of the values and nothing else. Errors name the
// object, the key or expression, and the line, and do not quote the content. Packages that
// render the values must redact Secrets from their messages.
package valuesfrom
