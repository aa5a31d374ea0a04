// Package planner computes what the operator would do about custom resources. It runs the
// code of the operator, reconcile.Reconciler and helm.Client, with the permissions of the
// user who plans, and never writes anything.
//
//   - kind.go: the kind and the chart to plan with.
//   - planner.go: Planner plans custom resources of one kind. Its transport sends reads and
//     dry runs only.
//   - objects.go: the objects of the releases, which the operator knows from its watches.
//   - sources.go: the objects of valuesFrom. The user may not be permitted to read them.
package planner
