// Package kindstatus computes the status fields that a watches entry adds to a kind.
//
// The entry defines each field by an expression in CEL (https://cel.dev):
//
//	status:
//	  podNames: observed.pods.map(p, string(p.metadata.name)).sort()
//
// Expressions read the variables release, values, resources and observed; see Input. Compile
// checks expressions and their types at start, and returns the Shape of each result for the
// kind's CRD. Evaluate limits the cost, returns a panic as an error, and leaves out a field
// whose expression fails without affecting the other fields.
//
// Equal inputs give equal fields: CEL has no clock, and maps are iterated in the order of
// their keys. Otherwise the status would be written repeatedly.
package kindstatus
