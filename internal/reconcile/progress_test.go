package reconcile

import (
	"testing"
	"time"
)

// TestProgress follows a revision from its deployment on.
func TestProgress(t *testing.T) {
	var m memory
	began := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	at := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
	step := func(what string, revision int, ready bool, now time.Time, want progress) {
		t.Helper()
		standing := inProgress
		if ready {
			standing = allReady
		}
		if got := m.progress("u", revision, began, 400*time.Second, standing, now); got != want {
			t.Errorf("%s: got %+v, want %+v", what, got, want)
		}
	}
	step("at first", 1, false, at(1), progress{revision: 1, since: began, watched: true, lookAt: at(6)})
	step("a little later", 1, false, at(2), progress{revision: 1, since: began, watched: true, lookAt: at(6)})
	if !m.of("u").progress.neverReady(1) || m.of("u").progress.neverReady(2) || m.of("other").progress.neverReady(1) {
		t.Error("revision 1 of u alone was never ready")
	}
	m.diagnosed("u", "no node", at(6))
	step("found out why", 1, false, at(7), progress{revision: 1, since: began, watched: true, why: "no node", lookAt: at(11), looks: 1})
	m.diagnosed("u", "no node", at(11))
	step("asked again, later", 1, false, at(12), progress{revision: 1, since: began, watched: true, why: "no node", lookAt: at(21), looks: 2})
	step("ready", 1, true, at(30), progress{revision: 1, watched: true, wasReady: true})
	if m.of("u").progress.neverReady(1) {
		t.Error("it was ready")
	}
	step("not any more", 1, false, at(40), progress{revision: 1, watched: true, wasReady: true, since: at(40), lookAt: at(45)})
	step("the next revision", 2, false, at(50), progress{revision: 2, watched: true, since: at(50), lookAt: at(55)})
	step("one whose hooks took their time", 3, false, at(900), progress{revision: 3, watched: true, since: at(900), lookAt: at(905)})
	m.forget("u")
	step("forgotten, and in its time", 2, false, at(100), progress{revision: 2, since: began, lookAt: at(105)})
	m.forget("u")
	step("forgotten, and its time is up", 2, false, at(500), progress{revision: 2, late: true, since: at(500), lookAt: at(505)})
	if m.of("u").progress.neverReady(2) {
		t.Error("it may have been ready before this process began")
	}
}

// Somebody may not see a reason for days: it is asked for ever more seldom.
func TestLooksBecomeSeldom(t *testing.T) {
	var m memory
	now := time.Now()
	m.progress("u", 1, now, time.Hour, inProgress, now)
	last := time.Duration(0)
	for range 40 {
		m.diagnosed("u", "", now)
		p := m.progress("u", 1, now, time.Hour, inProgress, now)
		if wait := p.lookAt.Sub(now); wait < last || wait > lastLook {
			t.Fatalf("after %s it waits for %s", last, wait)
		} else {
			last = wait
		}
	}
	if last != lastLook {
		t.Errorf("it waits for %s at last", last)
	}
}

// TestProgress_NoDeadlineWhileOpenEnded: the time in which objects have to become
// ready begins when the last of them that has no deadline is known.
func TestProgress_NoDeadlineWhileOpenEnded(t *testing.T) {
	var m memory
	began := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	at := func(minutes int) time.Time { return began.Add(time.Duration(minutes) * time.Minute) }
	since := func(standing objectsStanding, now time.Time) time.Time {
		return m.progress("u", 1, began, 10*time.Minute, standing, now).since
	}
	for _, step := range []struct {
		what     string
		standing objectsStanding
		now      int
		since    int
	}{
		{"in progress at first", inProgress, 1, 0},
		{"open-ended", openEnded, 2, 2},
		{"open-ended for hours", openEnded, 500, 500},
		{"in progress again", inProgress, 900, 900},
		{"still in progress", inProgress, 905, 900},
	} {
		if got := since(step.standing, at(step.now)); !got.Equal(at(step.since)) {
			t.Errorf("%s: not ready since %s, want %s", step.what, got, at(step.since))
		}
	}
}
