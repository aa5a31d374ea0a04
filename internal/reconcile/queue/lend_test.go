package queue

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/chartwright/chartwright/internal/plan"
)

// TestLend_OtherActionRuns: the slot is taken again only when the other action has
// ended.
func TestLend_OtherActionRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, _ := startPool(t, 1)
		order := make(chan string, 8)
		lent, otherRuns, end, done := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{}, 2)
		run(pool, releaseOf("web"), "one", plan.StepInstall, plan.Inputs{}, Key{}, func(_ context.Context, lend Slot) {
			resume := lend()
			close(lent)
			<-otherRuns
			order <- "reacquires"
			go func() { // The other action must still run at the call of resume.
				order <- "other ends"
				close(end)
			}()
			resume()
			order <- "resumes"
		}, func() { done <- struct{}{} })
		<-lent
		run(pool, releaseOf("db"), "two", plan.StepInstall, plan.Inputs{}, Key{}, func(context.Context, Slot) {
			close(otherRuns)
			<-end
		}, func() { done <- struct{}{} })
		<-done
		<-done
		for _, want := range []string{"reacquires", "other ends", "resumes"} {
			if got := <-order; got != want {
				t.Errorf("%q, want %q", got, want)
			}
		}
		if pool.slots.free != 1 {
			t.Errorf("%d slots are free", pool.slots.free)
		}
		if pool.Running(releaseOf("web"), "one") != nil {
			t.Error("the action still counts as running")
		}
	})
}

// TestLend_ReleaseStaysBusy: lending a slot does not free the release.
func TestLend_ReleaseStaysBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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
	})
}

// TestStop_EndsActionsThatLentTheirSlots: every action ends, and no goroutine is left
// (the bubble checks for that).
func TestStop_EndsActionsThatLentTheirSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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
			// Each action gets the slot that the previous action has lent.
			<-lent
		}
		stop()
		if len(done) != actions || pool.slots.free != 1 {
			t.Errorf("%d of %d actions ended, %d slots are free", len(done), actions, pool.slots.free)
		}
	})
}
