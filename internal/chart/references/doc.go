// Package references finds the targets of the references ($ref) in a JSON schema.
//
// A reference can point to a part of the document by a JSON pointer, an anchor or the $id of
// an embedded schema, or to another document. Other documents are never loaded: a network
// request or a file of the operator must not depend on a chart.
package references
