package queue

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/metrics"
	"github.com/chartwright/chartwright/internal/plan"
)

// ErrShutdown is why an action ended early when the operator stops.
var ErrShutdown = errors.New("the operator is shutting down")

// Pool runs actions beside the reconciliations: at most one a release, and at
// most as many at once as it has slots. It is a Runnable of the manager.
type Pool struct {
	slots slots
	// large holds one element while an action works on a large custom resource.
	large chan struct{}
	ctx   context.Context
	stop  context.CancelCauseFunc
	now   func() time.Time

	metrics *metrics.Metrics

	mu      sync.Mutex
	closed  bool
	running map[types.NamespacedName]task
	tasks   sync.WaitGroup
}

// task is an action under way, and the custom resource that it is for.
type task struct {
	plan.Running
	owner types.UID
	// interrupt ends the wait for the hook that the action waits for; nil where it
	// waits for none.
	interrupt func(plan.Change)
}

// NewPool returns a pool with that many slots. If single is true, the operator
// watches one namespace, which may use all of them.
func NewPool(slots int, single bool, now func() time.Time, m *metrics.Metrics) *Pool {
	ctx, stop := context.WithCancelCause(context.Background())
	return &Pool{
		slots:   newSlots(slots, single),
		large:   make(chan struct{}, 1),
		ctx:     ctx,
		stop:    stop,
		now:     now,
		metrics: m,
		running: map[types.NamespacedName]task{},
	}
}

// Start waits until the context ends; then it ends every action and waits
// until the last has recorded how it ended.
func (p *Pool) Start(ctx context.Context) error {
	<-ctx.Done()
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.stop(ErrShutdown)
	p.tasks.Wait()
	return nil
}

// Running returns which action on a release is under way for a custom resource,
// nil if none is.
func (p *Pool) Running(release types.NamespacedName, owner types.UID) *plan.Running {
	p.mu.Lock()
	defer p.mu.Unlock()
	if task, ok := p.running[release]; ok && task.owner == owner {
		return &task.Running
	}
	return nil
}

// Taken reports whether an action on a release is under way for another custom
// resource, which has no record of it yet but will have.
func (p *Pool) Taken(release types.NamespacedName, owner types.UID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	task, ok := p.running[release]
	return ok && task.owner != owner
}

// Task is an action on a release for a custom resource.
type Task struct {
	Release types.NamespacedName
	Owner   types.UID
	Step    plan.Step
	Inputs  plan.Inputs
	Key     Key
	// Action lends its slot while it only waits, for a hook say.
	Action func(ctx context.Context, slot Slot)
	// Done is called when the action has ended and its release is free again.
	Done func()
}

// Slot gives the slot of an action to others; the result takes a slot again.
type Slot func() (reacquire func())

// Release gives the slot to others.
func (s Slot) Release() (reacquire func()) { return s() }

// Run begins an action when it gets a slot. It returns false if one is under way
// on the release already, or if the pool is stopping.
func (p *Pool) Run(t Task) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, busy := p.running[t.Release]; busy || p.closed {
		return false
	}
	p.running[t.Release] = task{Running: plan.Running{Step: t.Step, Queued: true, Since: p.now(), Inputs: t.Inputs}, owner: t.Owner}
	p.metrics.ActionWaiting()
	p.tasks.Go(func() {
		// The release is free before Done calls for another reconciliation.
		defer t.Done()
		defer p.free(t.Release)
		got := p.slots.take(t.Key, p.ctx.Done())
		p.metrics.ActionBegan(got)
		if !got {
			return
		}
		p.begin(t.Release)
		defer func() {
			p.slots.give(t.Key.Namespace)
			p.metrics.ActionEnded()
		}()
		t.Action(p.ctx, func() func() { return p.lend(t.Key) })
	})
	return true
}

// lend returns a slot while its action only waits. The result takes a slot
// again, with the highest priority, since most of the action is done. The action
// never waits for another one while it waits for its slot, so that no two of them
// wait for each other. When the pool stops, an action still gets its slot, since
// all others end, too.
func (p *Pool) lend(of Key) func() {
	p.slots.give(of.Namespace)
	of.Priority = Urgent
	return func() { p.slots.take(of, nil) }
}

// Use notes the namespace of the release of a custom resource. The namespaces
// in use share the slots.
func (p *Pool) Use(uid types.UID, namespace string) { p.slots.use(uid, namespace) }

// Leave forgets a custom resource, which is gone.
func (p *Pool) Leave(uid types.UID) { p.slots.leave(uid) }

// begin notes that an action has got its slot.
func (p *Pool) begin(release types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	began := p.running[release]
	began.Queued, began.Since = false, p.now()
	p.running[release] = began
}

// SetHook notes which hook the action on a release waits for, nil for none, and how
// to end the wait.
func (p *Pool) SetHook(release types.NamespacedName, hook *plan.Hook, interrupt func(plan.Change)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if waits, ok := p.running[release]; ok {
		waits.Hook, waits.interrupt = hook, interrupt
		p.running[release] = waits
	}
}

// Interrupt asks the action on a release, if it waits for a hook, to end because
// of a change. An action whose hook is found to run all the same goes on.
func (p *Pool) Interrupt(release types.NamespacedName, owner types.UID, change plan.Change) {
	p.mu.Lock()
	task, ok := p.running[release]
	p.mu.Unlock()
	if ok && task.owner == owner && task.interrupt != nil {
		task.interrupt(change)
	}
}

func (p *Pool) free(release types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.running, release)
}

// Exclusive waits, without a slot, until no other action works on a large custom
// resource: rendering copies its values several times. It returns the slot with
// which the action also lends this right, and how to end it.
func (p *Pool) Exclusive(ctx context.Context, slot Slot) (both Slot, end func(), err error) {
	reacquire := slot.Release()
	defer reacquire()
	select {
	case p.large <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
	both = func() func() {
		reacquire := slot.Release()
		<-p.large
		return func() {
			p.large <- struct{}{}
			reacquire()
		}
	}
	return both, func() { <-p.large }, nil
}
