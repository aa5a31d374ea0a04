// Package crd derives the CRD of a kind from its chart.
//
// The schema of spec is converted from the chart's values.schema.json. If a chart has
// none, the schema is inferred from the default values and accepts undeclared keys
// (infer.go). Values that land in fields of Kubernetes, as package landing finds out, get
// the types of these fields (kubernetes.go): then the API server refuses a value that it
// would refuse in the rendered object. ValuesSchema returns the same as a
// values.schema.json. Generate is pure: equal charts give equal CRDs.
//
// # Guarantees
//
// The API server validates a custom resource first. Helm validates the values before
// every render. The API server must accept everything that Helm accepts, and store it
// unchanged. Therefore the conversion never makes a schema narrower, and prefers the
// wider schema if the two disagree:
//
//   - JSON Schema objects are open by default, and structural schemas drop undeclared
//     fields. Therefore an object that is not closed preserves unknown fields. A closed
//     object keeps "global" and the keys of subcharts.
//   - Helm validates the values merged with the chart's defaults, and the API server
//     only the user's values. Therefore fields with defaults are not required, and only
//     Helm checks the number of keys of an object with defaults.
//   - Null removes a default. Therefore optional fields are nullable: the API server
//     silently drops null from other fields. A field with an enum is not nullable,
//     because an enum rejects null even if it lists null.
//   - The CRD contains no defaults: the API server would store them in custom
//     resources, where they would outlive the chart. Descriptions mention the defaults.
//
// One check is intentionally stricter: the API server checks formats, although they
// are only annotations in recent drafts of JSON Schema.
//
// Generate omits keywords that a CRD cannot express and returns a Warning for each,
// which says whether Helm checks the keyword.
package crd
