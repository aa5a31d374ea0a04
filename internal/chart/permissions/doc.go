// Package permissions derives the permissions that an operator needs to serve its
// kinds, and no more.
//
// Derive (permissions.go) joins three sources, each in a file of its own:
//
//   - what the operator does for a kind, with any chart (own.go): the custom
//     resources, the release records, events, the references of a watches entry;
//   - the objects that a chart renders (renders.go) over many values, which come
//     from its defaults, its examples and its schema (schema.go). These objects
//     are certain. A Role among them grants rules (grants.go), and the API server
//     lets only an account grant a rule that has it;
//   - the syntax of the templates (templates.go): objects behind conditions that
//     no tried values meet, and lookups. Package analysis finds them.
//
// chart.go turns objects into verbs, resources.go kinds into resources, and
// needs.go collects the rules. role.go writes them. A line of a template that the
// analysis cannot resolve becomes Unresolved, with file and line, and a person
// declares its permissions by the key rbac of the watches entry.
//
// Rules have exact verbs, those that packages helm, apply and the others use.
// No rule has a wildcard, unless a person wrote it.
package permissions
