// Package diagnose finds out why an object of a release is not ready, and reports the cause
// in one line for kubectl describe. A diagnosis takes a few read requests, so it runs only
// when a release is late, and not in every reconciliation.
//
// The cause is rarely in the object itself, but in an object that it created: in the pod of
// the newest ReplicaSet of a Deployment, for example, and in the last warning event about
// that pod. If there is no such pod, or a permission is missing, the diagnosis reports the
// conditions and warnings of the last object that it found.
//
// Messages do not contain values from the environment, the arguments or the annotations of
// a pod, even where a kubelet quotes them, nor the termination message of a container.
package diagnose
