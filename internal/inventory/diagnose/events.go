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

// withWarning adds the last warning about the object of a cause, unless it repeats the
// cause.
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

// events returns the events about the object with the given UID, or with the name and kind
// if the UID is empty.
func (s *search) events(ctx context.Context, of apply.Key, uid types.UID) ([]corev1.Event, error) {
	about := fields.Set{"involvedObject.uid": string(uid)}
	if uid == "" {
		about = fields.Set{"involvedObject.kind": of.Kind, "involvedObject.name": of.Name}
	}
	// The namespace of events about cluster-scoped objects is "default".
	namespace := cmp.Or(of.Namespace, metav1.NamespaceDefault)
	options := metav1.ListOptions{FieldSelector: about.AsSelector().String(), Limit: listLimit}
	list, err := s.client.CoreV1().Events(namespace).List(ctx, options)
	if err != nil {
		return nil, s.unlessForbidden("list events", err)
	}
	return list.Items, nil
}

// newest returns the newest event that passes, or nil.
func newest(events []corev1.Event, passes func(*corev1.Event) bool) *corev1.Event {
	events = slices.DeleteFunc(events, func(e corev1.Event) bool { return !passes(&e) })
	if len(events) == 0 {
		return nil
	}
	return new(slices.MaxFunc(events, func(a, b corev1.Event) int { return lastObserved(&a).Compare(lastObserved(&b)) }))
}

// lastObserved returns the time at which an event was last observed. Which time field is set depends
// on the API of the writer, and on whether the event occurred more than once.
func lastObserved(e *corev1.Event) time.Time {
	times := []time.Time{e.CreationTimestamp.Time, e.FirstTimestamp.Time, e.LastTimestamp.Time, e.EventTime.Time}
	if e.Series != nil {
		times = append(times, e.Series.LastObservedTime.Time)
	}
	return slices.MaxFunc(times, time.Time.Compare)
}

// repeats reports whether an event only repeats a cause: it has the same message, or it is
// an event like "Error: ErrImagePull", which kubelets emit next to a detailed one.
func repeats(cause Cause, e *corev1.Event) bool {
	message := strings.TrimPrefix(e.Message, "Error creating: ")
	message, isError := strings.CutPrefix(message, "Error: ")
	if cause.Message != "" && strings.Contains(cause.Message, message) {
		return true
	}
	return isError && cause.Reason != "" && !strings.Contains(message, " ")
}
