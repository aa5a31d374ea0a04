package reconcile

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/helm"
	"github.com/chartwright/chartwright/internal/plan"
)

// watchedHook is a hook whose state the test sets. The test holds the lock except
// during waits.
type watchedHook struct {
	*hookWait
	sync.Mutex
	now    plan.Hook
	err    error
	checks int
	// postponed counts the changes that were sent again later.
	postponed int
	reports   []string
	ended     error
}

// follow starts to observe a hook in a synctest bubble.
func follow(t *testing.T) *watchedHook {
	t.Helper()
	h := &watchedHook{now: plan.Hook{State: api.HookStarting}}
	ctx, stop := context.WithCancel(t.Context())
	h.hookWait = &hookWait{
		name: "Job default/web", stop: stop,
		changes: make(chan plan.Change, 1), ended: make(chan struct{}), known: map[api.HookState]bool{},
		read: func(context.Context) (plan.Hook, error) {
			h.Lock()
			defer h.Unlock()
			h.checks++
			return h.now, h.err
		},
		report: func(hook *plan.Hook, isNew bool) {
			h.Lock()
			defer h.Unlock()
			h.reports = append(h.reports, reportOf(hook, isNew))
		},
		end: func(cause error) {
			h.Lock()
			defer h.Unlock()
			h.ended = cause
		},
		again: func() {
			h.Lock()
			defer h.Unlock()
			h.postponed++
		},
	}
	h.Lock()
	go h.run(ctx)
	t.Cleanup(func() {
		h.Unlock()
		stop()
		<-h.hookWait.ended
	})
	return h
}

func reportOf(hook *plan.Hook, isNew bool) string {
	text := string(hook.State) + ":" + hook.Why
	if isNew {
		text += " (new)"
	}
	return text
}

func (h *watchedHook) after(d time.Duration) {
	h.Unlock()
	defer h.Lock()
	time.Sleep(d)
	synctest.Wait()
}

func (h *watchedHook) change(change plan.Change) {
	h.Unlock()
	defer h.Lock()
	h.interrupt(change)
	synctest.Wait()
}

// TestHookWait_ChecksPeriodically: the number of requests is bounded, and the status is
// patched only after a change.
func TestHookWait_ChecksPeriodically(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := follow(t)
		h.after(2 * time.Second)
		if h.checks != 0 {
			t.Errorf("%d checks of a hook that has just begun", h.checks)
		}
		h.now = plan.Hook{State: api.HookStuck, Why: "ErrImagePull"}
		h.after(2 * time.Second)
		h.now.Why = "ImagePullBackOff"
		h.after(55 * time.Second)
		h.now.Why = "ErrImagePull"
		h.after(10 * time.Second)
		h.now = plan.Hook{State: api.HookRunning}
		h.after(10 * time.Second)
		h.err = errors.New("away")
		h.now = plan.Hook{State: api.HookStuck, Why: "lost"}
		h.after(10 * time.Second)
		h.err = nil
		h.after(10 * time.Second)
		want := "Stuck:ErrImagePull (new) | Running: (new) | Stuck:lost"
		if got := strings.Join(h.reports, " | "); got != want {
			t.Errorf("reports are %s, want %s", got, want)
		}
		if h.checks > 11 {
			t.Errorf("%d checks within 100 seconds", h.checks)
		}
		if h.ended != nil {
			t.Errorf("ended without a change: %v", h.ended)
		}
	})
}

// TestHookWait_ChecksAgainBeforeItEnds: a hook that was stuck at the last check may run
// at the time of the edit.
func TestHookWait_ChecksAgainBeforeItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := follow(t)
		h.now = plan.Hook{State: api.HookStuck, Why: "ImagePullBackOff"}
		h.after(4 * time.Second)
		h.now = plan.Hook{State: api.HookRunning}
		h.change(plan.ChangeEdit)
		if h.ended != nil || len(h.reports) != 2 {
			t.Errorf("ended with %v, reports %q", h.ended, h.reports)
		}
		h.now, h.err = plan.Hook{State: api.HookStuck, Why: "ImagePullBackOff"}, errors.New("away")
		h.change(plan.ChangeEdit)
		if h.ended != nil || h.postponed != 1 {
			t.Errorf("ended with %v although the state of the hook is unknown; postponed: %d", h.ended, h.postponed)
		}
		h.err = nil
		h.change(plan.ChangeDeletion)
		if !errors.Is(h.ended, helm.ErrInterrupted) || errors.Is(h.ended, errAborted) ||
			!strings.Contains(h.ended.Error(), "the custom resource is being deleted. Hook Job default/web cannot start: ImagePullBackOff") {
			t.Errorf("ended with %v", h.ended)
		}
	})
}

// TestHookWait_AbortNeedsNoCheck: a user has decided.
func TestHookWait_AbortNeedsNoCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := follow(t)
		h.change(plan.ChangeAbort)
		if !errors.Is(h.ended, helm.ErrInterrupted) || !errors.Is(h.ended, errAborted) || h.checks != 0 {
			t.Errorf("ended with %v after %d checks", h.ended, h.checks)
		}
	})
}

// TestHookWait_LastChangeCounts: an abort replaces an edit that run did not receive
// yet.
func TestHookWait_LastChangeCounts(t *testing.T) {
	w := &hookWait{changes: make(chan plan.Change, 1)}
	w.interrupt(plan.ChangeEdit)
	w.interrupt(plan.ChangeAbort)
	if change := <-w.changes; change != plan.ChangeAbort {
		t.Errorf("got %s", change)
	}
}

// TestHookWait_Why: without pods, the cause is that of the last check.
func TestHookWait_Why(t *testing.T) {
	for _, test := range []struct {
		name string
		last string
		now  plan.Hook
		err  error
		want string
	}{
		{"the pods are deleted", "ImagePullBackOff", plan.Hook{State: api.HookStarting}, nil, "ImagePullBackOff"},
		{"its pods are being replaced", "ImagePullBackOff", plan.Hook{State: api.HookStarting, Why: "Pending"}, nil, "ImagePullBackOff"},
		{"the last attempt has failed", "", plan.Hook{State: api.HookCrashing, Why: "exit code 1"}, nil, "exit code 1"},
		{"ended before the first check", "", plan.Hook{State: api.HookStarting, Why: "Unschedulable"}, nil, "Unschedulable"},
		{"the API server is unavailable", "ImagePullBackOff", plan.Hook{}, errors.New("away"), "ImagePullBackOff"},
	} {
		w := &hookWait{last: plan.Hook{Why: test.last}, read: func(context.Context) (plan.Hook, error) { return test.now, test.err }}
		if got := w.why(true); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
		if got := w.why(false); got != "" {
			t.Errorf("%s: why() = %q without a failure", test.name, got)
		}
	}
}
