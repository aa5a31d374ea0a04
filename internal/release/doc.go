// Package release indexes the releases that are stored in the cluster. The Index holds
// the metadata of Helm's release Secrets in memory, without their content.
//
// The Index has two sources. A watch of the Secrets' metadata (Handler) reports the
// writes of all programs, including the helm CLI and other operators. Put and Remove
// record the writes of this process at once, so that it never acts on an outdated view.
// The newer resourceVersion wins.
//
// A Record contains the program that wrote a revision and the digests of its inputs,
// from the labels of package api. The helm CLI copies these labels to new revisions;
// Record.Genuine detects that.
package release
