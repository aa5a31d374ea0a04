// Package crd derives the CustomResourceDefinition of a kind from its chart.
//
// The schema of spec comes from the chart's values.schema.json; where a chart has
// none, from the default values, and is open to whatever they do not name. Generate is pure: equal charts give
// equal definitions.
//
// # What holds
//
// The API server is the first gate and Helm's own check of the values, before
// every render, the second. The first must let through whatever the second
// does, and keep it as it was written. So a schema is never made narrower on
// its way here, and where the two worlds differ the conversion errs on the open
// side:
//
//   - JSON Schema objects are open by default, structural ones drop what they do
//     not know. An object that is not closed keeps unknown fields. One that is
//     closed keeps "global" and the keys of subcharts.
//   - Helm checks the values with the chart's defaults beneath, the API server
//     checks what the user wrote. What defaults supply is therefore not
//     required, and what counts keys is left to Helm where there are defaults.
//   - A null takes a default away, so optional fields are nullable: of others
//     the API server drops a null unseen. A field with an enum cannot be, for an
//     enum refuses null even where it lists it.
//   - There is never a default: it would be written into custom resources and
//     outlive the chart that it came from. Descriptions tell defaults instead.
//
// One thing is stricter by intent: a format is checked although recent drafts
// of JSON Schema take it for a remark.
//
// What cannot be expressed is left out and returned as a Warning, which tells
// whether Helm still checks it.
package crd
