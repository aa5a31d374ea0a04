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

// ErrShutdown is the error of an action that ends early because the operator stops.
var ErrShutdown = errors.New("the operator is shutting down")

// Pool runs actions concurrently with the reconciliations: at most one for each
// release, and at most as many at a time as it has slots. It is a Runnable of the
// manager.
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
	// releases are the releases in running by the UIDs of their custom resources.
	releases map[types.UID]types.NamespacedName
	tasks    sync.WaitGroup
}

// task is a running or queued action with the UID of its custom resource.
type task struct {
	plan.Running
	owner types.UID
	// interrupt ends the wait for a hook; nil if the action waits for no hook.
	interrupt func(plan.Change)
}

// NewPool returns a pool with a number of slots. If single is true, the operator
// watches one namespace, which may use all slots.
func NewPool(slots int, single bool, now func() time.Time, m *metrics.Metrics) *Pool {
	ctx, stop := context.WithCancelCause(context.Background())
	return &Pool{
		slots:   newSlots(slots, single),
		large:   make(chan struct{}, 1),
		ctx:     ctx,
		stop:    stop,
		now:     now,
		metrics: m,
		running: map[types.NamespacedName]task{}, releases: map[types.UID]types.NamespacedName{},
	}
}

// Start waits until the context ends. Then it ends all actions, and waits until they
// have recorded their results.
func (p *Pool) Start(ctx context.Context) error {
	<-ctx.Done()
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.stop(ErrShutdown)
	p.tasks.Wait()
	return nil
}

// Running returns the action of a custom resource on a release, or nil.
func (p *Pool) Running(release types.NamespacedName, owner types.UID) *plan.Running {
	p.mu.Lock()
	defer p.mu.Unlock()
	if task, ok := p.running[release]; ok && task.owner == owner {
		return &task.Running
	}
	return nil
}

// Taken reports whether another custom resource has an action on a release, which may
// have no record yet.
func (p *Pool) Taken(release types.NamespacedName, owner types.UID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	task, ok := p.running[release]
	return ok && task.owner != owner
}

// ReleaseOf returns the release on which a custom resource has an action.
func (p *Pool) ReleaseOf(owner types.UID) (release types.NamespacedName, acts bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	release, acts = p.releases[owner]
	return release, acts
}

// Task is an action on a release for a custom resource.
type Task struct {
	Release types.NamespacedName
	Owner   types.UID
	Step    plan.Step
	Inputs  plan.Inputs
	Key     Key
	// Until drops the action when the context ends, unless the action has begun; nil never
	// drops it.
	Until context.Context
	// Action lends its slot while it only waits, for example for a hook.
	Action func(ctx context.Context, slot Slot)
	// Done is called when the action has ended and its release is free again.
	Done func()
}

// Slot releases the slot of an action. The result takes a slot again.
type Slot func() (reacquire func())

// Release releases the slot.
func (s Slot) Release() (reacquire func()) { return s() }

// Run queues an action, which runs when it gets a slot. It returns false if the
// release has an action already, or if the pool is stopping.
func (p *Pool) Run(t Task) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, busy := p.running[t.Release]; busy || p.closed {
		return false
	}
	p.running[t.Release] = task{Running: plan.Running{Step: t.Step, Queued: true, Since: p.now(), Inputs: t.Inputs}, owner: t.Owner}
	p.releases[t.Owner] = t.Release
	p.metrics.ActionWaiting()
	p.tasks.Go(func() {
		// The release is free before Done calls for another reconciliation.
		defer t.Done()
		defer p.free(t.Release)
		got := p.take(t)
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

// take waits for a slot. It returns false if the pool stops or the action is dropped.
func (p *Pool) take(t Task) bool {
	if t.Until == nil {
		return p.slots.take(t.Key, p.ctx.Done())
	}
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	stop := context.AfterFunc(t.Until, cancel)
	defer stop()
	if !p.slots.take(t.Key, ctx.Done()) {
		return false
	}
	if t.Until.Err() != nil {
		p.slots.give(t.Key.Namespace)
		return false
	}
	return true
}

// lend releases the slot of an action that only waits. The result takes a slot again,
// with the highest priority, because most of the action is done. An action that waits
// for its slot never waits for another action at the same time, so there is no
// deadlock. While the pool stops, the action still gets its slot, because the other
// actions end.
func (p *Pool) lend(of Key) func() {
	p.slots.give(of.Namespace)
	of.Priority = Urgent
	return func() { p.slots.take(of, nil) }
}

// Use notes the namespace of the release of a custom resource. The namespaces
// in use share the slots.
func (p *Pool) Use(uid types.UID, namespace string) { p.slots.use(uid, namespace) }

// Leave forgets a deleted custom resource.
func (p *Pool) Leave(uid types.UID) { p.slots.leave(uid) }

// begin marks an action as running after it waited for a slot.
func (p *Pool) begin(release types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	began := p.running[release]
	began.Queued, began.Since = false, p.now()
	p.running[release] = began
}

// SetHook notes the hook that the action on a release waits for, nil for none, and the
// function that ends the wait.
func (p *Pool) SetHook(release types.NamespacedName, hook *plan.Hook, interrupt func(plan.Change)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if waits, ok := p.running[release]; ok {
		waits.Hook, waits.interrupt = hook, interrupt
		p.running[release] = waits
	}
}

// Interrupt passes a change to the action on a release if it waits for a hook. The
// action continues if its hook turns out to be running.
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
	if owner := p.running[release].owner; p.releases[owner] == release {
		delete(p.releases, owner)
	}
	delete(p.running, release)
}

// Exclusive waits, without a slot, until no other action works on a large custom
// resource, because rendering copies its values several times. It returns a Slot that
// also releases this exclusive access, and a function that ends it.
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
