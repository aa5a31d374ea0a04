// Package observed holds the objects that expressions of the kind's status fields read in
// addition to the managed resources, such as the pods of a Deployment.
//
// A Watch selects the objects of one informer: a kind, and the labels that are equal for
// all custom resources. The informer feeds the Store through Handler. The Store keeps each
// object in one bucket by its namespace and the labels that differ between custom
// resources. A custom resource reads only its own bucket, and only the users of a bucket
// are notified of a change. Reconciliations read memory only.
package observed
