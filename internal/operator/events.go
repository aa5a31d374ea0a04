package operator

import (
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// recentEvents is the number of objects for which the recorder stores events, to count
// repeated ones. The default of 4,096 would use 2 KiB for each while the process runs, but
// events repeat within a short time.
const recentEvents = 256

// newRecorder returns a recorder of core/v1 events. The recorder for events.k8s.io
// aggregates events with equal reasons and shows the text of the first, so that users would
// read about revision 2 after an upgrade to revision 5.
func newRecorder(mgr manager.Manager, clientset kubernetes.Interface, name string) (record.EventRecorder, error) {
	broadcaster := record.NewBroadcasterWithCorrelatorOptions(record.CorrelatorOptions{LRUCacheSize: recentEvents})
	// Start now: the broadcaster drops events that are sent before it records them.
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: clientset.CoreV1().Events("")})
	if err := mgr.Add(onEnd(broadcaster.Shutdown)); err != nil {
		return nil, err
	}
	return broadcaster.NewRecorder(mgr.GetScheme(), corev1.EventSource{Component: name}), nil
}

// namespaceFile contains the namespace of the process's pod.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// ownPod returns the pod of the operator, nil outside a pod. The Deployment sets
// POD_NAMESPACE, POD_NAME and POD_UID by the downward API. Without them, as in a Deployment
// of the operator-sdk, the namespace is that of the ServiceAccount and the name is the host
// name. The UID, by which kubectl describe finds events, is then unknown.
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
		var err error
		if name, err = hostname(); err != nil {
			return nil
		}
	}
	return &corev1.ObjectReference{
		APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: name, UID: types.UID(getenv("POD_UID")),
	}
}

// notices emits warnings for the administrator on the operator's own pod. Outside a pod
// they are only logged.
type notices struct {
	recorder record.EventRecorder
	pod      *corev1.ObjectReference
}

func newNotices(recorder record.EventRecorder) notices {
	return notices{recorder: recorder, pod: ownPod(os.Getenv, os.ReadFile, os.Hostname)}
}

// namespace returns the operator's own namespace, empty outside a pod.
func (n notices) namespace() string {
	return ptr.Deref(n.pod, corev1.ObjectReference{}).Namespace
}

// warn emits a warning event.
func (n notices) warn(reason, text string) {
	if n.pod != nil {
		n.recorder.Event(n.pod, corev1.EventTypeWarning, reason, shorten(text, maxEvent))
	}
}

// maxEvent is the API server's limit for the text of an event, in bytes.
const maxEvent = 1024

// shorten truncates a long text, and refers to /readyz for the rest.
func shorten(text string, limit int) string {
	const more = "… (complete text: /readyz)"
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(more)], "") + more
}
