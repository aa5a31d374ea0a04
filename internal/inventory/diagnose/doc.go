// Package diagnose finds out why an object of a release is not ready, and says
// so in one sentence for kubectl describe. It is asked once a release is late,
// not in every pass: an answer costs a few reads of the API server.
//
// An object is rarely what is wrong; what it made is. From a Deployment the way
// leads to its newest ReplicaSet, from there to a pod that is not ready, and to
// the last warning that somebody wrote about that pod. Where the way ends
// early, for there is no pod or it may not be read, the object at which it ends
// answers by its conditions and warnings.
//
// What a pod was given to keep, by environment, arguments or annotations, is no
// part of an answer, also where a kubelet quotes it; nor is what a container
// wrote when it ended.
package diagnose
