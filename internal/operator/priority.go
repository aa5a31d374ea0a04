package operator

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// Priorities of passes, above that of 0 which a new or a deleted custom resource
// has, and those below it of what is there when the process begins: an edit
// stands behind no flood, and an action that has ended is reported before
// others begin.
const (
	editPriority = 10
	wakePriority = 5
)

type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// add calls for a pass with a priority, where the queue has such.
func add(to queue, request ctrl.Request, priority int, after time.Duration) {
	if ordered, ok := to.(priorityqueue.PriorityQueue[ctrl.Request]); ok {
		ordered.AddWithOpts(priorityqueue.AddOpts{Priority: &priority, After: after}, request)
		return
	}
	to.AddAfter(request, after)
}

// enqueue calls for a pass over a custom resource that has changed.
type enqueue struct {
	handler.EnqueueRequestForObject
}

// Update lets an edit go first.
func (e *enqueue) Update(ctx context.Context, change event.UpdateEvent, to queue) {
	if change.ObjectNew == nil || !change.ObjectNew.GetDeletionTimestamp().IsZero() {
		e.EnqueueRequestForObject.Update(ctx, change, to)
		return
	}
	add(to, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(change.ObjectNew)}, editPriority, 0)
}
