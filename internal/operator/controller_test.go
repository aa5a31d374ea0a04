package operator

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// TestEnqueue_EditsHavePriority expects edits, and then completed actions, before new and
// deleted custom resources.
func TestEnqueue_EditsHavePriority(t *testing.T) {
	queue := priorityqueue.New[ctrl.Request]("test")
	defer queue.ShutDown()
	named := func(name string, deleted bool) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetNamespace("apps")
		u.SetName(name)
		if deleted {
			u.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
		}
		return u
	}
	handler, wake := &enqueue{}, &wakeup{}
	if err := wake.listen(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	handler.Create(t.Context(), event.CreateEvent{Object: named("made", false)}, queue)
	handler.Update(t.Context(), event.UpdateEvent{ObjectOld: named("goes", false), ObjectNew: named("goes", true)}, queue)
	wake.call(types.NamespacedName{Namespace: "apps", Name: "ended"}, 0)
	handler.Update(t.Context(), event.UpdateEvent{ObjectOld: named("edited", false), ObjectNew: named("edited", false)}, queue)
	for _, want := range []string{"edited", "ended", "made", "goes"} {
		got, _ := queue.Get()
		if got.Name != want || got.Namespace != "apps" {
			t.Errorf("next is %s, expected %s", got, want)
		}
		queue.Done(got)
	}
}

func TestAdd_QueueWithoutPriorities(t *testing.T) {
	plain := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	defer plain.ShutDown()
	add(plain, ctrl.Request{NamespacedName: types.NamespacedName{Name: "web"}}, editPriority, 0)
	if got, _ := plain.Get(); got.Name != "web" {
		t.Errorf("next is %s", got)
	}
}
