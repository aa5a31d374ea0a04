// Package release knows which releases are stored in the cluster without
// reading them: an Index in memory of the metadata of Helm's release Secrets.
//
// Two sources feed the Index. A watch of the Secrets' metadata (Handler) tells
// what anybody stores, the helm CLI and other operators included. Put and
// Remove tell it what this process has just written, so that nobody here acts
// on a view that has not caught up; whichever has the newer resourceVersion
// counts.
//
// A Record says who wrote a revision and from which inputs, by the labels of
// package api. The helm CLI copies labels to the revisions that it makes, which
// Record.Genuine tells from our own.
package release
