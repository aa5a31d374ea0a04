// Package observed knows the objects that a kind's own status fields speak of
// beside those of the release, such as the pods of its Deployment.
//
// One informer watches what a Watch says: a kind, and of it the objects that
// have the labels which do not differ from one custom resource to another. It
// feeds the Store through Handler. There each object is in the one place that
// its namespace and the differing labels lead to, so that a custom resource
// finds its own without looking at others', and a change is told to those alone
// who can see it. A pass reads memory only.
package observed
