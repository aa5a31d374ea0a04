// Package inputs is a reverse index from the inputs of custom resources to the
// custom resources that use them. An input is any object that the reconciliation of a
// custom resource reads in addition to the custom resource: a Secret of valuesFrom, or the
// pods that a status field counts.
//
// Tracker.Set records what a custom resource uses, and Tracker.Users returns the custom
// resources to reconcile when an input changes. Three packages use a Tracker, each with a
// store that informers feed:
//
//   - dependencies: the objects that must be ready before a custom resource is deployed.
//   - valuesfrom: the objects of valuesFrom, and the secrets among their values.
//   - observed: the objects that expressions of the kind's status fields read.
//
// A Budget limits the memory of a store for objects that tenants can write.
package inputs
