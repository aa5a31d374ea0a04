package operator

import (
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
)

// namespaceFile holds the namespace of the pod that a process runs in.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// ownPod returns the pod that the operator runs in, nil where it runs in none.
// The Deployment may say which by environment variables; else the pod's name is
// the host's. The UID, by which kubectl describe finds events, is known from
// POD_UID alone.
func ownPod(getenv func(string) string, readFile func(string) ([]byte, error), hostname func() (string, error)) *corev1.ObjectReference {
	namespace, name := getenv("POD_NAMESPACE"), getenv("POD_NAME")
	if namespace == "" {
		data, err := readFile(namespaceFile)
		if err != nil {
			return nil
		}
		namespace = strings.TrimSpace(string(data))
	}
	if name == "" {
		host, err := hostname()
		if err != nil {
			return nil
		}
		name = host
	}
	return &corev1.ObjectReference{
		APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: name, UID: types.UID(getenv("POD_UID")),
	}
}

// notices tells an admin, by warnings on the operator's own pod. Where it runs
// in none there is the log.
type notices struct {
	recorder record.EventRecorder
	pod      *corev1.ObjectReference
}

func newNotices(recorder record.EventRecorder) notices {
	return notices{recorder: recorder, pod: ownPod(os.Getenv, os.ReadFile, os.Hostname)}
}

// namespace returns the operator's own namespace, empty outside a pod.
func (n notices) namespace() string {
	if n.pod == nil {
		return ""
	}
	return n.pod.Namespace
}

// warn writes an event.
func (n notices) warn(reason, text string) {
	if n.pod != nil {
		n.recorder.Event(n.pod, corev1.EventTypeWarning, reason, shorten(text, maxEvent))
	}
}

// maxEvent is the API server's limit of an event's text, in bytes.
const maxEvent = 1024

// shorten cuts a text that is too long, and says where there is more.
func shorten(text string, limit int) string {
	const more = "… (all of it is at /readyz)"
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(more)], "") + more
}
