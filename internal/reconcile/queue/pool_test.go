package queue

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/metrics"
	"github.com/chartwright/chartwright/internal/plan"
)

func releaseOf(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "apps", Name: name}
}

// startPool runs a pool in a synctest bubble until the test, or stop, ends it. The bubble
// fails the test if an action waits forever or a goroutine does not end.
func startPool(t *testing.T, slots int) (pool *Pool, stop func()) {
	t.Helper()
	pool = NewPool(slots, false, time.Now, metrics.New(nil, metrics.Sources{}))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- pool.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return pool, stop
}

func TestRun_OneActionPerRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, _ := startPool(t, 4)
		begin, end, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
		web := releaseOf("web")
		if !run(pool, web, "one", plan.StepInstall, plan.Inputs{}, Key{}, func(context.Context, Slot) { close(begin); <-end }, func() { close(done) }) {
			t.Fatal("a free release is refused")
		}
		<-begin
		if run(pool, web, "one", plan.StepUpgrade, plan.Inputs{}, Key{}, func(context.Context, Slot) { t.Error("it ran") }, func() { t.Error("it was done") }) {
			t.Error("a second action began")
		}
		if r := pool.Running(web, "one"); r == nil || r.Step != plan.StepInstall || r.Since.IsZero() {
			t.Errorf("running is %+v", r)
		}
		if r := pool.Running(web, "two"); r != nil {
			t.Errorf("another custom resource runs %+v", r)
		}
		if pool.Taken(web, "one") || !pool.Taken(web, "two") || pool.Taken(releaseOf("db"), "two") {
			t.Error("the release must be taken only for other custom resources")
		}
		if release, acts := pool.ReleaseOf("one"); !acts || release != web {
			t.Errorf("the custom resource acts on %v", release)
		}
		other := make(chan struct{})
		if !run(pool, releaseOf("db"), "three", plan.StepInstall, plan.Inputs{}, Key{}, func(context.Context, Slot) {}, func() { close(other) }) {
			t.Error("an action on another release is refused")
		}
		<-other
		close(end)
		<-done
		if pool.Running(web, "one") != nil {
			t.Error("the action still counts as running when Done is called")
		}
		if release, acts := pool.ReleaseOf("one"); acts {
			t.Errorf("the custom resource still acts on %v", release)
		}
	})
}

func TestRun_FreesTheReleaseBeforeDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, _ := startPool(t, 1)
		again := make(chan bool, 1)
		run(pool, releaseOf("web"), "one", plan.StepInstall, plan.Inputs{}, Key{}, func(context.Context, Slot) {}, func() {
			again <- run(pool, releaseOf("web"), "one", plan.StepUpgrade, plan.Inputs{}, Key{}, func(context.Context, Slot) {}, func() {})
		})
		if !<-again {
			t.Error("the release is still busy when Done is called")
		}
	})
}

func TestRun_LimitedBySlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slots, actions = 3, 40
		pool, _ := startPool(t, slots)
		var now, most, ran atomic.Int64
		var wait sync.WaitGroup
		for i := range actions {
			wait.Add(1)
			run(pool, releaseOf(strconv.Itoa(i)), "one", plan.StepInstall, plan.Inputs{}, Key{}, func(context.Context, Slot) {
				n := now.Add(1)
				for {
					seen := most.Load()
					if n <= seen || most.CompareAndSwap(seen, n) {
						break
					}
				}
				ran.Add(1)
				now.Add(-1)
			}, wait.Done)
		}
		wait.Wait()
		if ran.Load() != actions || most.Load() > slots {
			t.Errorf("%d of %d actions ran, %d at once with %d slots", ran.Load(), actions, most.Load(), slots)
		}
	})
}

func TestRunning_ReportsQueuedActions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, _ := startPool(t, 1)
		step := make(chan struct{})
		wait := func(context.Context, Slot) { step <- struct{}{}; <-step }
		first, second := releaseOf("web"), releaseOf("db")
		run(pool, first, "one", plan.StepInstall, plan.Inputs{}, Key{}, wait, func() {})
		<-step
		run(pool, second, "two", plan.StepInstall, plan.Inputs{}, Key{}, wait, func() {})
		if r := pool.Running(first, "one"); r == nil || r.Queued {
			t.Errorf("running action %+v", r)
		}
		waiting := pool.Running(second, "two")
		if waiting == nil || !waiting.Queued {
			t.Errorf("queued action %+v", waiting)
		}
		time.Sleep(time.Second)
		step <- struct{}{}
		<-step
		if r := pool.Running(second, "two"); r == nil || r.Queued || !r.Since.After(waiting.Since) {
			t.Errorf("action after the queue %+v", r)
		}
		step <- struct{}{}
	})
}

func TestStart_EndsActionsAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, stop := startPool(t, 1)
		begun := make(chan struct{})
		var recorded, doneOfWaiting atomic.Bool
		run(pool, releaseOf("web"), "one", plan.StepInstall, plan.Inputs{}, Key{}, func(ctx context.Context, _ Slot) {
			close(begun)
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), ErrShutdown) {
				t.Errorf("ended by %v", context.Cause(ctx))
			}
			recorded.Store(true)
		}, func() {})
		<-begun
		run(pool, releaseOf("waits"), "two", plan.StepInstall, plan.Inputs{}, Key{}, func(ctx context.Context, _ Slot) {
			if ctx.Err() == nil {
				t.Error("a queued action began when the pool stopped")
			}
		}, func() { doneOfWaiting.Store(true) })
		stop()
		if !recorded.Load() || !doneOfWaiting.Load() {
			t.Error("the pool stopped before its actions had ended")
		}
		if run(pool, releaseOf("late"), "three", plan.StepInstall, plan.Inputs{}, Key{}, func(context.Context, Slot) { t.Error("it ran") }, func() {}) {
			t.Error("an action began after the stop")
		}
	})
}

// run begins an action.
func run(p *Pool, release types.NamespacedName, owner types.UID, step plan.Step, inputs plan.Inputs, key Key, action func(context.Context, Slot), done func()) bool {
	return p.Run(Task{Release: release, Owner: owner, Step: step, Inputs: inputs, Key: key, Action: action, Done: done})
}

// TestRun_DropsQueuedActions: the end of Until drops an action that waits for a slot, and
// not one that runs.
func TestRun_DropsQueuedActions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, _ := startPool(t, 1)
		until, end := context.WithCancel(t.Context())
		begun, proceed, done := make(chan struct{}), make(chan struct{}), make(chan string, 2)
		pool.Run(Task{Release: releaseOf("web"), Owner: "one", Until: until, Action: func(ctx context.Context, _ Slot) {
			close(begun)
			<-proceed
			if ctx.Err() != nil {
				t.Error("the running action was interrupted")
			}
		}, Done: func() { done <- "web" }})
		<-begun
		pool.Run(Task{Release: releaseOf("db"), Owner: "two", Until: until, Action: func(context.Context, Slot) { t.Error("it ran") }, Done: func() { done <- "db" }})
		end()
		if got := <-done; got != "db" {
			t.Errorf("%s is done first", got)
		}
		close(proceed)
		<-done
		// The slot is free again.
		pool.Run(Task{Release: releaseOf("db"), Owner: "two", Until: until, Action: func(context.Context, Slot) { t.Error("it ran") }, Done: func() { done <- "db" }})
		<-done
		pool.Run(Task{Release: releaseOf("db"), Owner: "two", Action: func(context.Context, Slot) {}, Done: func() { done <- "db" }})
		<-done
	})
}
