package diagnose

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/apply"
)

// withWarning adds the last warning about the cause's object, if it says more than
// the cause does.
func (s *search) withWarning(ctx context.Context, cause Cause, uid types.UID) (Cause, error) {
	events, err := s.events(ctx, cause.Object, uid)
	last := newest(events, func(e *corev1.Event) bool {
		return e.Type == corev1.EventTypeWarning && !repeats(cause, e)
	})
	if last != nil {
		cause.Event = join(": ", last.Reason, last.Message)
	}
	return cause, err
}

// events returns what was written about an object: by its UID, or by its name
// where that is not known.
func (s *search) events(ctx context.Context, of apply.Key, uid types.UID) ([]corev1.Event, error) {
	about := fields.Set{"involvedObject.uid": string(uid)}
	if uid == "" {
		about = fields.Set{"involvedObject.kind": of.Kind, "involvedObject.name": of.Name}
	}
	// Events about cluster-scoped objects are kept in the default namespace.
	namespace := cmp.Or(of.Namespace, metav1.NamespaceDefault)
	options := metav1.ListOptions{FieldSelector: about.AsSelector().String(), Limit: listLimit}
	list, err := s.client.CoreV1().Events(namespace).List(ctx, options)
	if err != nil {
		return nil, s.unlessForbidden("list events", err)
	}
	return list.Items, nil
}

// newest returns the last of those events that pass, nil if none does.
func newest(events []corev1.Event, passes func(*corev1.Event) bool) *corev1.Event {
	events = slices.DeleteFunc(events, func(e corev1.Event) bool { return !passes(&e) })
	if len(events) == 0 {
		return nil
	}
	return new(slices.MaxFunc(events, func(a, b corev1.Event) int { return seen(&a).Compare(seen(&b)) }))
}

// seen returns when an event was last seen. Which of the times is set depends
// on the API that wrote it, and on whether it was seen more than once.
func seen(e *corev1.Event) time.Time {
	times := []time.Time{e.CreationTimestamp.Time, e.FirstTimestamp.Time, e.LastTimestamp.Time, e.EventTime.Time}
	if e.Series != nil {
		times = append(times, e.Series.LastObservedTime.Time)
	}
	return slices.MaxFunc(times, time.Time.Compare)
}

// repeats reports whether an event says only what the cause says: the message
// itself, or, as kubelets do beside a telling event, "Error: ErrImagePull".
func repeats(cause Cause, e *corev1.Event) bool {
	message := strings.TrimPrefix(e.Message, "Error creating: ")
	message, isError := strings.CutPrefix(message, "Error: ")
	if cause.Message != "" && strings.Contains(cause.Message, message) {
		return true
	}
	return isError && cause.Reason != "" && !strings.Contains(message, " ")
}
