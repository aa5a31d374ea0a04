// Package rollout orders the upgrades of a kind's custom resources to a new chart,
// for example after the operator's image was replaced.
//
// A Queue knows the Position of each custom resource: on the new chart, being
// upgraded, failed, or waiting. It admits the waiting ones in order, a limited
// number at a time. A failed upgrade stops the others of its namespace, and
// failures in several namespaces stop all of them (Limits). Nothing is stored: the
// positions follow from the custom resources and their releases, so after a restart
// a new Queue returns the same answers once it has all of them.
//
// The package is pure: plain data in, plain data out. Package reconcile reports the
// positions and reconciles the custom resources that the Queue returns.
package rollout
