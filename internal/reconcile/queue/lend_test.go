package queue

import (
	"context"
	"testing"
	"time"

	"github.com/chartwright/chartwright/internal/plan"
)

// TestALentSlotLetsAnotherRun: and it is taken again only when that one has
// ended.
func TestALentSlotLetsAnotherRun(t *testing.T) {
	pool, _ := startPool(t, 1)
	order := make(chan string, 8)
	lent, otherRuns, end, done := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{}, 2)
	run(pool, releaseOf("web"), "one", plan.StepInstall, plan.Inputs{}, Key{}, func(_ context.Context, lend Slot) {
		resume := lend()
		close(lent)
		<-otherRuns
		order <- "wants it back"
		go func() { // So that the other has not ended when it is asked for.
			order <- "other ends"
			close(end)
		}()
		resume()
		order <- "goes on"
	}, func() { done <- struct{}{} })
	<-lent
	run(pool, releaseOf("db"), "two", plan.StepInstall, plan.Inputs{}, Key{}, func(context.Context, Slot) {
		close(otherRuns)
		<-end
	}, func() { done <- struct{}{} })
	<-done
	<-done
	for _, want := range []string{"wants it back", "other ends", "goes on"} {
		if got := <-order; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if pool.slots.free != 1 {
		t.Errorf("%d slots are free", pool.slots.free)
	}
	if pool.Running(releaseOf("web"), "one") != nil {
		t.Error("it is said to run still")
	}
}

// TestLendingFreesNoRelease: the release stays busy while its slot is lent.
func TestLendingFreesNoRelease(t *testing.T) {
	pool, _ := startPool(t, 1)
	lent, end, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	run(pool, releaseOf("web"), "one", plan.StepInstall, plan.Inputs{}, Key{}, func(_ context.Context, lend Slot) {
		defer lend()()
		close(lent)
		<-end
	}, func() { close(done) })
	<-lent
	if run(pool, releaseOf("web"), "one", plan.StepUpgrade, plan.Inputs{}, Key{}, func(context.Context, Slot) {}, func() {}) {
		t.Error("a second action on the release began")
	}
	if running := pool.Running(releaseOf("web"), "one"); running == nil || running.Step != plan.StepInstall {
		t.Errorf("running is %+v", running)
	}
	close(end)
	<-done
}

// TestStopWhileSlotsAreLent: every action ends, more of them than there are
// slots, and nothing is left (startPool looks for that).
func TestStopWhileSlotsAreLent(t *testing.T) {
	pool, stop := startPool(t, 1)
	const actions = 5
	lent, done := make(chan struct{}, actions), make(chan struct{}, actions)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		run(pool, releaseOf(name), "one", plan.StepInstall, plan.Inputs{}, Key{}, func(ctx context.Context, lend Slot) {
			resume := lend()
			lent <- struct{}{}
			<-ctx.Done()
			resume()
		}, func() { done <- struct{}{} })
		// Each gets the slot that the one before has lent.
		select {
		case <-lent:
		case <-time.After(30 * time.Second):
			t.Fatalf("%s does not get the slot that was lent", name)
		}
	}
	stop()
	if len(done) != actions || pool.slots.free != 1 {
		t.Errorf("%d of %d actions ended, %d slots are free", len(done), actions, pool.slots.free)
	}
}
