package diagnose

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/apply"
)

func TestNewest_ComparesAllTimesOfEvents(t *testing.T) {
	micro := func(n int) metav1.MicroTime { return metav1.NewMicroTime(minute(n).Time) }
	all := []corev1.Event{
		{Reason: "Created", ObjectMeta: metav1.ObjectMeta{CreationTimestamp: minute(1)}},
		{Reason: "First", FirstTimestamp: minute(2)},
		{Reason: "Last", FirstTimestamp: minute(1), LastTimestamp: minute(3)},
		{Reason: "Event", EventTime: micro(4)},
		{Reason: "Series", EventTime: micro(1), Series: &corev1.EventSeries{LastObservedTime: micro(5)}},
	}
	every := func(*corev1.Event) bool { return true }
	for n := range all {
		// The order of the list is irrelevant.
		events := append([]corev1.Event{all[n]}, all[:n]...)
		if got := newest(events, every); got.Reason != all[n].Reason {
			t.Errorf("got %s, want %s", got.Reason, all[n].Reason)
		}
	}
	if got := newest(all, func(*corev1.Event) bool { return false }); got != nil {
		t.Errorf("got event %s, want nil", got.Reason)
	}
}

func TestRepeats_EventWithoutNewInformation(t *testing.T) {
	cause := Cause{Reason: "ImagePullBackOff", Message: "Back-off pulling image"}
	for _, test := range []struct {
		cause   Cause
		message string
		want    bool
	}{
		{cause, "Error: ErrImagePull", true},
		{cause, "Error: Back-off pulling image", true},
		{cause, "Error creating: Back-off pulling image", true},
		{cause, "Error: no space is left", false},
		{cause, "Failed to pull image: manifest unknown", false},
		{cause, "ErrImagePull", false},
		{Cause{}, "Error: ErrImagePull", false},
		{Cause{}, "", false},
	} {
		if got := repeats(test.cause, &corev1.Event{Message: test.message}); got != test.want {
			t.Errorf("event %q, cause %q: got %t", test.message, test.cause.description(), got)
		}
	}
}

// Without a UID, the events of an earlier object with the same name are included.
func TestWhy_FindsEventsByName(t *testing.T) {
	client := cluster(warning("w", "Odd", "of its own", 1), warning("v", "Odd", "of another", 2))
	cause, err := Why(t.Context(), client, key(schema.GroupKind{Kind: "Other"}, "w"), "")
	if err != nil || cause.Event != "Odd: of its own" {
		t.Errorf("got %q, %v", cause.Event, err)
	}
}

func TestWhy_FindsEventsOfClusterScopedObject(t *testing.T) {
	client := cluster(warning("disk", "Odd", "something", 1))
	cause, err := Why(t.Context(), client, apply.Key{Kind: "PersistentVolume", Name: "disk"}, "disk")
	if want := "PersistentVolume disk: last warning: Odd: something"; err != nil || cause.String() != want {
		t.Errorf("got %q, %v, want %q", cause, err, want)
	}
}
