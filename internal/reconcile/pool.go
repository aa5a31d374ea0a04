package reconcile

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

// Pool runs actions beside the reconcile passes: at most one a release, and at
// most as many at once as it has slots. It is a Runnable of the manager.
type Pool struct {
	slots slots
	large largeTurn
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
		large:   newLargeTurn(),
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

// Running tells which action on a release is under way for a custom resource,
// nil if none is.
func (p *Pool) Running(release types.NamespacedName, owner types.UID) *plan.Running {
	p.mu.Lock()
	defer p.mu.Unlock()
	if task, ok := p.running[release]; ok && task.owner == owner {
		return &task.Running
	}
	return nil
}

// Taken tells whether an action on a release is under way for another custom
// resource, which has no record of it yet but will have.
func (p *Pool) Taken(release types.NamespacedName, owner types.UID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	task, ok := p.running[release]
	return ok && task.owner != owner
}

// Run begins an action on a release for a custom resource, when it gets a slot,
// and calls done when it has ended. It returns false where one is under way
// already or the pool is stopping.
//
// An action that only waits, for a hook say, calls lend: others have its slot
// until it calls what lend returned, which waits for a slot again.
func (p *Pool) Run(release types.NamespacedName, owner types.UID, step plan.Step, inputs plan.Inputs, turn turn, action func(ctx context.Context, lend func() func()), done func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, busy := p.running[release]; busy || p.closed {
		return false
	}
	p.running[release] = task{Running: plan.Running{Step: step, Queued: true, Since: p.now(), Inputs: inputs}, owner: owner}
	p.metrics.ActionWaiting()
	p.tasks.Go(func() {
		// The release is free before done calls for another pass.
		defer done()
		defer p.free(release)
		got := p.slots.take(turn, p.ctx.Done())
		p.metrics.ActionBegan(got)
		if !got {
			return
		}
		p.begin(release)
		defer func() {
			p.slots.give(turn.namespace)
			p.metrics.ActionEnded()
		}()
		action(p.ctx, func() func() { return p.lend(turn) })
	})
	return true
}

// lend returns a slot while its action only waits. The result takes a slot
// again, with the greatest urgency, since most of the action is done. The action
// never waits for another one while it waits for its slot, so that no two of them
// wait for each other. When the pool stops, an action still gets its slot, since
// all others end, too.
func (p *Pool) lend(of turn) func() {
	p.slots.give(of.namespace)
	of.urgency = urgent
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

// hook notes which hook the action on a release waits for, nil for none, and how
// to end the wait.
func (p *Pool) hook(release types.NamespacedName, hook *plan.Hook, interrupt func(plan.Change)) {
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

// largeTurn lets one action at a time work on the values of a large custom
// resource: rendering copies them several times. The zero value is not usable;
// call newLargeTurn.
type largeTurn chan struct{}

func newLargeTurn() largeTurn { return make(largeTurn, 1) }

// take waits for the turn without a slot of the pool, so that only large custom
// resources wait for large ones. It returns how to lend the slot and the turn
// while the action waits for a hook, and how to end the turn.
func (l largeTurn) take(ctx context.Context, lend func() func()) (lendBoth func() func(), end func(), err error) {
	back := lend()
	defer back()
	select {
	case l <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
	lendBoth = func() func() {
		back := lend()
		<-l
		return func() {
			l <- struct{}{}
			back()
		}
	}
	return lendBoth, func() { <-l }, nil
}
