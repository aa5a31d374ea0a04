// Package inputs is a reverse index from the inputs of custom resources to the
// custom resources that use them. An input is any object besides the custom resource
// that its reconciliation reads: a Secret that values come from, or the pods that a
// status field counts.
//
// Index.Set records what a custom resource uses, and Index.Users returns the custom
// resources to reconcile when an input changes. Two packages build on the index, each
// with a store that informers feed:
//
//   - valuesfrom: the Secrets and ConfigMaps of valuesFrom, and which of their values
//     are secret.
//   - observed: the objects that expressions of the kind's status fields read.
package inputs
