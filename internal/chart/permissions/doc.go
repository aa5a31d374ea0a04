// Package permissions derives the rights that an operator needs to serve its kinds,
// and no more.
//
// Derive joins three sources, each in a file of its own:
//
//   - what the operator does for a kind whatever its chart holds (own.go): the
//     custom resources, the release records, events, what a watches entry names;
//   - what a chart renders (renders.go), over many values (probes.go): these
//     objects are certain, and of Roles the rules are seen that the chart grants
//     (grants.go), which the API server lets nobody grant who has not got them;
//   - what stands in the templates (scan.go, page.go, eval.go): objects behind conditions
//     that no values tried here meet, and lookups.
//
// The scan executes nothing. It follows each template through all branches at
// once and looks at the lines that name an object's apiVersion and kind; where
// an expression stands there, it finds out which texts it can give. What it
// cannot find out is Unresolved, with file and line, and is for a person to
// declare by the key rbac of the watches entry.
//
// Rules have exact verbs, those that package helm, apply and the others use.
// No rule has a wildcard, unless a person wrote it.
package permissions
