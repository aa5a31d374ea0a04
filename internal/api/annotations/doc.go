// Package annotations reads what people ask of the operator by annotations on a
// custom resource.
//
// Parse never fails: a value that cannot be understood is reported in Problems
// and otherwise as if it were not there, so that it stops nothing, least of all
// a deletion.
//
// The annotations of the operator-sdk count for those of ours that say the same.
//
// Some annotations are states, as long as they are there: pause,
// reconcile-period, deletion-policy, take-ownership and those that steer Helm's
// actions. The others are requests: rollback-to, reconcile-requested-at, force
// and test. A request is known by its value alone and answered once; which
// were answered stands on the release record, see records.Marks.
package annotations
