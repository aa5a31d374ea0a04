package diagnose

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/chartwright/chartwright/internal/testenv"
)

// server starts an API server. It skips the test if the binaries are not installed.
func server(t *testing.T) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(testenv.Start(t).Config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// This needs an API server, because the fake client does not support field selectors. The
// pod has a predecessor with the same name, whose events are newer.
func TestWhy_FindsEventsByUID(t *testing.T) {
	client := server(t)
	pod, err := client.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	earlier := warning("earlier", "Odd", "of its predecessor", 9)
	// The server sets the time of creation in full seconds.
	earlier.LastTimestamp = metav1.NewTime(pod.CreationTimestamp.Add(time.Hour))
	earlier.InvolvedObject = corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "web", UID: "earlier"}
	own := warning("own", "FailedMount", "of its own", 1)
	own.InvolvedObject = corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "web", UID: pod.UID}
	for _, e := range []*corev1.Event{earlier, own} {
		if _, err := client.CoreV1().Events("default").Create(t.Context(), e, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	cause, err := Why(t.Context(), client, key(kindPod, "web"), "")
	if want := "Pod default/web: Pending: not scheduled to a node yet; last warning: FailedMount: of its own"; err != nil || cause.String() != want {
		t.Errorf("got %q, %v, want %q", cause, err, want)
	}
	// Selected by name, the newest event is that of the predecessor.
	nameless := key(kindPod, "web")
	nameless.Group = "example.com"
	cause, err = Why(t.Context(), client, nameless, "")
	if err != nil || cause.Event != "Odd: of its predecessor" {
		t.Errorf("got %q, %v", cause.Event, err)
	}
	cause, err = Why(t.Context(), client, nameless, pod.UID)
	if err != nil || cause.Event != "FailedMount: of its own" {
		t.Errorf("got %q, %v", cause.Event, err)
	}
}
