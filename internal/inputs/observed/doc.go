// Package observed holds the objects that expressions of the kind's status fields read in
// addition to the managed resources, such as the pods of a Deployment.
//
// A Watch selects the objects of one informer: a kind, and the labels that are equal for
// all custom resources. The informer feeds the Store through Handler. The Store keeps each
// object in one bucket by its namespace and the labels that differ between custom
// resources. A custom resource reads only its own bucket, and only the users of a bucket
// are notified of a change. Reconciliations read memory only.
//
// Tenants can write objects of any number and size that a Watch selects. Therefore:
//
//   - The informer and the Store share one Object for each object of the API server. It has
//     only the fields that expressions read, see Watch.Reading.
//   - The content of an Object is nil unless the budget of the Store has room for it. The
//     transform decides that, before the informer keeps the object.
//   - After all events are handled, the charges are the sizes of the contents that are kept.
//   - A bucket with an Object without content is missing as a whole, with the reason. Other
//     buckets are not affected.
//   - When an object becomes smaller or is deleted, the users of refused objects are
//     notified, and Select reads the refused objects that fit now.
package observed
