// Package landing finds where the values of a chart land: the fields of Kubernetes objects
// that they become, and the types of these fields.
//
// A Finder (landing.go) keeps the landings of charts. To find them, it renders the chart
// (find.go) with a marker at the path of each default value, and
// searches the markers in the rendered objects (search.go). fields.go finds the type of a
// field among the Go types of Kubernetes in k8s.io/api, which the API server uses to decode
// requests. A value without a landing has no known type: the chart does not render it, uses
// it in another form, or writes it into fields of different types.
package landing
