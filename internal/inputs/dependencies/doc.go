// Package dependencies holds which custom resources depend on which objects, and decides
// whether a custom resource must wait for one of them.
//
// A user is a custom resource that depends on others. It depends on an object by name, or on
// all objects in a namespace that a label selector matches. Store.Set records the
// dependencies of a user, Store.Check returns what the user waits for, and Store.Dependents
// returns the users that delay the deletion of a custom resource.
//
// Kinds are of two sorts:
//
//   - A kind that this operator serves, see Store.Serve. The status of its custom resources
//     is not enough: after a restart with new charts, the stored status is about the old
//     chart. Therefore a custom resource is held, and counts as not ready, until its
//     reconciler calls Store.Settle.
//   - Any other kind. Its objects are ready if package health says so.
//
// Informers pass the objects to the Store through a Feed, whose Transform limits their memory.
// An object that exceeds the budget is not ready, and every selector in its namespace matches
// it: its labels and its status are unknown. The Store is in memory only, sends no request,
// and evaluates an object at most once per resourceVersion. A user is notified when the
// result of Check differs from the last result of Check or notification.
package dependencies
