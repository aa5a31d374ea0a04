package operator

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// toldLately is of how many objects the recorder remembers what it told, to
// count what repeats itself. Its default of 4,096 would hold two KiB of each, for
// as long as the process lives; what repeats itself does so within a while.
const toldLately = 256

// newRecorder returns a recorder of core/v1 events. That of events.k8s.io counts
// events with equal reasons as one and shows the text of the first alone, so
// that a person would read of revision 2 when revision 5 was deployed.
func newRecorder(mgr manager.Manager, clientset kubernetes.Interface, name string) (record.EventRecorder, error) {
	broadcaster := record.NewBroadcasterWithCorrelatorOptions(record.CorrelatorOptions{LRUCacheSize: toldLately})
	// At once: what is told before there is a sink is lost.
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: clientset.CoreV1().Events("")})
	if err := mgr.Add(recording{broadcaster}); err != nil {
		return nil, err
	}
	return broadcaster.NewRecorder(mgr.GetScheme(), corev1.EventSource{Component: name}), nil
}

// recording ends the recording of events with the manager. It needs no lease, for
// a standby tells of itself, too.
type recording struct{ record.EventBroadcaster }

// NeedLeaderElection answers no.
func (recording) NeedLeaderElection() bool { return false }

// Start waits for the end.
func (r recording) Start(ctx context.Context) error {
	<-ctx.Done()
	r.Shutdown()
	return nil
}
