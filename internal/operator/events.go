package operator

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// newRecorder returns a recorder of core/v1 events. That of events.k8s.io counts
// events with equal reasons as one and shows the text of the first alone, so
// that a person would read of revision 2 when revision 5 was deployed.
func newRecorder(mgr manager.Manager, name string) (record.EventRecorder, error) {
	client, err := typedcorev1.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("set up the event recorder: %w", err)
	}
	broadcaster := record.NewBroadcaster()
	err = mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.Events("")})
		<-ctx.Done()
		broadcaster.Shutdown()
		return nil
	}))
	if err != nil {
		return nil, err
	}
	return broadcaster.NewRecorder(mgr.GetScheme(), corev1.EventSource{Component: name}), nil
}
