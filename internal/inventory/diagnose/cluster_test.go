package diagnose

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/chartwright/chartwright/internal/apply"
)

// Kinds of the objects in the tests.
var (
	kindDeployment  = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	kindReplicaSet  = schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}
	kindStatefulSet = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
	kindDaemonSet   = schema.GroupKind{Group: "apps", Kind: "DaemonSet"}
	kindPod         = schema.GroupKind{Kind: "Pod"}
	kindClaim       = schema.GroupKind{Kind: "PersistentVolumeClaim"}
)

// start is the creation time of the first object of a test.
var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// minute returns the time n minutes after the start.
func minute(n int) metav1.Time { return metav1.NewTime(start.Add(time.Duration(n) * time.Minute)) }

// labels are the labels of all pods, so that only the controller reference shows the owner.
var labels = map[string]string{"app": "web"}

var selector = &metav1.LabelSelector{MatchLabels: labels}

// meta returns the metadata of an object whose UID is its name.
func meta(name string, controller types.UID) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), Labels: labels, CreationTimestamp: minute(0)}
	if controller != "" {
		yes := true
		m.OwnerReferences = []metav1.OwnerReference{{UID: controller, Name: string(controller), Controller: &yes}}
	}
	return m
}

// at returns a change of the creation time of a pod.
func at(n int) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.CreationTimestamp = minute(n) }
}

// makePod returns a running pod with one container that is not ready.
func makePod(name string, controller types.UID, with ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: meta(name, controller)}
	p.Spec.NodeName = "node-1"
	p.Spec.Containers = []corev1.Container{{Name: "web", Image: "registry.example.com/web:1"}}
	p.Status.Phase = corev1.PodRunning
	for _, change := range with {
		change(p)
	}
	return p
}

func phase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

func condition(kind corev1.PodConditionType, status corev1.ConditionStatus, reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: status, Reason: reason, Message: message})
	}
}

var ready = condition(corev1.PodReady, corev1.ConditionTrue, "", "")

func deleted(p *corev1.Pod) {
	now := minute(9)
	p.DeletionTimestamp, p.Finalizers = &now, []string{"example.com/hold"}
}

// waits returns a change that makes a container wait for a reason.
func waits(reason, message string) func(*corev1.Pod) {
	return status(corev1.ContainerStatus{Name: "web", State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message},
	}})
}

// ended returns a change that terminates a container.
func ended(reason string, code int32) func(*corev1.Pod) {
	return status(corev1.ContainerStatus{Name: "web", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		Reason: reason, ExitCode: code, Message: "what the container wrote",
	}}})
}

func status(s corev1.ContainerStatus) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, s) }
}

// event returns an event about the object whose UID is its name.
func event(about, kind, reason, message string, n int) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("%s.%s.%d", about, reason, n)},
		InvolvedObject: corev1.ObjectReference{UID: types.UID(about), Name: about, Kind: "Other"},
		Type:           kind, Reason: reason, Message: message, LastTimestamp: minute(n),
	}
}

func warning(about, reason, message string, n int) *corev1.Event {
	return event(about, corev1.EventTypeWarning, reason, message, n)
}

// cluster returns a fake client with these objects. It adds field selectors for events, which
// the fake client ignores.
func cluster(objects ...runtime.Object) *fake.Clientset {
	client := fake.NewClientset(objects...)
	client.PrependReactor("list", "events", func(action clienttesting.Action) (bool, runtime.Object, error) {
		list := action.(clienttesting.ListAction)
		found, err := client.Tracker().List(list.GetResource(), corev1.SchemeGroupVersion.WithKind("Event"), list.GetNamespace())
		if err != nil {
			return true, nil, err
		}
		events := found.(*corev1.EventList)
		events.Items = slices.DeleteFunc(events.Items, func(e corev1.Event) bool {
			return !list.GetListRestrictions().Fields.Matches(fields.Set{
				"involvedObject.uid": string(e.InvolvedObject.UID), "involvedObject.kind": e.InvolvedObject.Kind, "involvedObject.name": e.InvolvedObject.Name,
			})
		})
		return true, events, nil
	})
	return client
}

// forbid makes requests fail with Forbidden.
func forbid(client *fake.Clientset, verb, resource string) {
	fail(client, verb, resource, apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", nil))
}

func fail(client *fake.Clientset, verb, resource string, err error) {
	client.PrependReactor(verb, resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
}

func key(gk schema.GroupKind, name string) apply.Key {
	return apply.Key{Group: gk.Group, Kind: gk.Kind, Namespace: "default", Name: name}
}

// diagnose returns the cause of the object whose UID is its name.
func diagnose(t *testing.T, client *fake.Clientset, gk schema.GroupKind, name string) string {
	t.Helper()
	cause, err := Why(t.Context(), client, key(gk, name), types.UID(name))
	if err != nil {
		t.Fatal(err)
	}
	return cause.String()
}
