// Package permissions derives the RBAC rules that an operator needs to serve its kinds,
// and no others.
//
// Derive (permissions.go) combines three sources:
//
//   - requests of the operator for a kind, regardless of the chart (own.go): custom
//     resources, release records, events, and references of the watches entry;
//   - objects that a chart renders with many values (renders.go), from its defaults,
//     examples and schema (schema.go). These objects are certain. A rendered Role grants
//     rules (grants.go), and the API server requires that the operator has these rules;
//   - the syntax of the templates (templates.go), analyzed by package analysis: objects
//     behind conditions that no tested values satisfy, and lookups.
//
// The objects of a chart are facts (facts.go) that depend only on its files and on the
// overrides of the watches entry. An Analyzer (analyzer.go) keeps them, also between
// processes.
//
// chart.go maps objects to verbs, and resources.go maps kinds to resources. needs.go
// collects the rules, and role.go formats them. A line of a template that the analysis
// cannot resolve becomes an Unresolved with file and line. The user then declares its
// permissions by the key rbac of the watches entry.
//
// Rules contain exactly the verbs that the operator uses, and no wildcards unless the
// user declares them.
package permissions
