// Package annotations parses the annotations on a custom resource that users set to send
// requests to the operator or to change settings.
//
// Parse never fails: it reports an invalid value in Problems and otherwise ignores it, so
// that the value does not block other operations, such as a deletion.
//
// Annotations of the operator-sdk are aliases of Chartwright's annotations.
//
// Some annotations are settings that apply while the annotation exists: pause,
// reconcile-period, deletion-policy, take-ownership, and those for Helm's actions. abort
// applies to the action that it names. The others are requests: rollback-to,
// reconcile-requested-at, force and test. The operator identifies a request by its value and
// answers it once. The release record holds the digests of the answered requests, see the
// labels in package api.
package annotations
