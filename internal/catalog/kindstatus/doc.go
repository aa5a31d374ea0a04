// Package kindstatus computes the fields of a status that are a kind's own.
//
// A watches entry says what they are, each by an expression in CEL
// (https://cel.dev):
//
//	status:
//	  podNames: observed.pods.map(p, string(p.metadata.name)).sort()
//
// Expressions speak of release, values, resources and observed; see Input.
// Compile checks them at start, types and all, and tells the Shape of what each
// gives, for the kind's CRD. Evaluate cannot do harm: its cost is limited, a
// panic is an error, and a field whose expression fails is taken out while the
// others are told.
//
// Equal inputs give equal fields. CEL has no clock, and maps are walked in the
// order of their keys here, or a status would be written again and again.
package kindstatus
