package engine

import (
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HookSource is the Source of what Kube builds from a hook. The annotations of an object do not
// show it, because items of a list have none.
const HookSource = "hook"

// Kube carries out what an action of Helm requests of a cluster. A list has either hooks or
// objects of the release.
type Kube interface {
	// Build parses a manifest.
	Build(manifest io.Reader, validate bool) (ResourceList, error)
	// Create creates hooks, and the objects of the first revision.
	Create(resources ResourceList) (*Result, error)
	// Update applies the target and deletes what only the original contains.
	Update(original, target ResourceList) (*Result, error)
	// DeleteHooks deletes hooks, and Delete the objects of a release that is uninstalled.
	DeleteHooks(hooks ResourceList) (*Result, []error)
	Delete(resources ResourceList, policy metav1.DeletionPropagation) (*Result, []error)
	// WatchUntilReady waits until hooks have finished. WaitForDelete waits until hooks are
	// deleted, and for other objects only if the uninstall waits; see NewUninstall.
	WatchUntilReady(hooks ResourceList, timeout time.Duration) error
	WaitForDelete(resources ResourceList, timeout time.Duration) error
	// GetPodList and OutputContainerLogsForPodList read the logs of failed hooks.
	GetPodList(namespace string, options metav1.ListOptions) (*corev1.PodList, error)
	OutputContainerLogsForPodList(pods *corev1.PodList, namespace string, output func(namespace, pod, container string) io.Writer) error
}

// Config is what an action of Helm works with.
type Config struct {
	// Getter is the client of lookup.
	Getter RESTClientGetter
	// Driver stores the records. Without it, they are stored in memory.
	Driver Driver
	// Kube is the cluster. Without it, nothing is sent.
	Kube         Kube
	Capabilities *Capabilities
	// Log gets Helm's messages, and HookOutput the logs of hooks. Both may be nil.
	Log        func(format string, values ...any)
	HookOutput func(namespace, pod, container string) io.Writer
}

// cluster adds to Kube what all actions call, and what has no effect here: the status of the custom
// resource reports the readiness, and the first request shows whether the API server is reachable.
type cluster struct{ Kube }

func (cluster) IsReachable() error                             { return nil }
func (cluster) Wait(ResourceList, time.Duration) error         { return nil }
func (cluster) WaitWithJobs(ResourceList, time.Duration) error { return nil }
