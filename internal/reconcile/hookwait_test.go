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

// watchedHook is a hook of which a test sets the state. The test holds the lock
// except while time passes.
type watchedHook struct {
	*hookWait
	sync.Mutex
	now   plan.Hook
	err   error
	looks int
	// postponed counts the changes that nobody could decide on.
	postponed int
	reports   []string
	ended     error
}

// follow begins to follow a hook, in the time of a synctest bubble.
func follow(t *testing.T) *watchedHook {
	t.Helper()
	h := &watchedHook{now: plan.Hook{State: api.HookStarting}}
	ctx, stop := context.WithCancel(t.Context())
	h.hookWait = &hookWait{
		name: "Job default/web", now: time.Now, stop: stop,
		changes: make(chan plan.Change, 1), ended: make(chan struct{}), known: map[api.HookState]bool{},
		look: func(context.Context) (plan.Hook, error) {
			h.Lock()
			defer h.Unlock()
			h.looks++
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

// TestHookWait_LooksNowAndThen: requests are bounded, and the status is written
// where something has changed.
func TestHookWait_LooksNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := follow(t)
		h.after(2 * time.Second)
		if h.looks != 0 {
			t.Errorf("%d looks at a hook that has just begun", h.looks)
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
		if h.looks > 11 {
			t.Errorf("%d looks within 100 seconds", h.looks)
		}
		if h.ended != nil {
			t.Errorf("it ended without any change: %v", h.ended)
		}
	})
}

// TestHookWait_LooksAgainBeforeItEnds: what was stuck at the last look may run by
// the time of the edit.
func TestHookWait_LooksAgainBeforeItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := follow(t)
		h.now = plan.Hook{State: api.HookStuck, Why: "ImagePullBackOff"}
		h.after(4 * time.Second)
		h.now = plan.Hook{State: api.HookRunning}
		h.change(plan.ChangeEdit)
		if h.ended != nil || len(h.reports) != 2 {
			t.Errorf("it ended with %v, reports are %q", h.ended, h.reports)
		}
		h.now, h.err = plan.Hook{State: api.HookStuck, Why: "ImagePullBackOff"}, errors.New("away")
		h.change(plan.ChangeEdit)
		if h.ended != nil || h.postponed != 1 {
			t.Errorf("nobody knows how the hook is, and it ended with %v; postponed: %d", h.ended, h.postponed)
		}
		h.err = nil
		h.change(plan.ChangeDeletion)
		if !errors.Is(h.ended, helm.ErrInterrupted) || errors.Is(h.ended, errAborted) ||
			!strings.Contains(h.ended.Error(), "the custom resource is being deleted. Hook Job default/web cannot start: ImagePullBackOff") {
			t.Errorf("it ended with %v", h.ended)
		}
	})
}

// TestHookWait_AbortNeedsNoLook: a person has decided.
func TestHookWait_AbortNeedsNoLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := follow(t)
		h.change(plan.ChangeAbort)
		if !errors.Is(h.ended, helm.ErrInterrupted) || !errors.Is(h.ended, errAborted) || h.looks != 0 {
			t.Errorf("it ended with %v after %d looks", h.ended, h.looks)
		}
	})
}

// TestHookWait_TheLastChangeCounts: an abort is not lost behind an edit that was
// not looked at yet.
func TestHookWait_TheLastChangeCounts(t *testing.T) {
	w := &hookWait{changes: make(chan plan.Change, 1)}
	w.interrupt(plan.ChangeEdit)
	w.interrupt(plan.ChangeAbort)
	if change := <-w.changes; change != plan.ChangeAbort {
		t.Errorf("got %s", change)
	}
}

// TestHookWait_Why: what was seen last counts where nothing is left to look at.
func TestHookWait_Why(t *testing.T) {
	for _, test := range []struct {
		name string
		last string
		now  plan.Hook
		err  error
		want string
	}{
		{"its pods are gone", "ImagePullBackOff", plan.Hook{State: api.HookStarting}, nil, "ImagePullBackOff"},
		{"its pods are being replaced", "ImagePullBackOff", plan.Hook{State: api.HookStarting, Why: "Pending"}, nil, "ImagePullBackOff"},
		{"its last try has failed", "", plan.Hook{State: api.HookCrashing, Why: "exit code 1"}, nil, "exit code 1"},
		{"it was over before the first look", "", plan.Hook{State: api.HookStarting, Why: "Unschedulable"}, nil, "Unschedulable"},
		{"the API server is away", "ImagePullBackOff", plan.Hook{}, errors.New("away"), "ImagePullBackOff"},
	} {
		w := &hookWait{last: plan.Hook{Why: test.last}, look: func(context.Context) (plan.Hook, error) { return test.now, test.err }}
		if got := w.why(true); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
		if got := w.why(false); got != "" {
			t.Errorf("%s: one that has not failed says %q", test.name, got)
		}
	}
}
