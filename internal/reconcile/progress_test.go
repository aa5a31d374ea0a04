package reconcile

import (
	"testing"
	"time"
)

// TestProgress observes revisions from their deployment on.
func TestProgress_FollowsARevision(t *testing.T) {
	var m memory
	began := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	at := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
	step := func(what string, revision int, ready bool, now time.Time, want progress) {
		t.Helper()
		objects := inProgress
		if ready {
			objects = allReady
		}
		if got := m.progress("u", revision, began, 400*time.Second, objects, now); got != want {
			t.Errorf("%s: got %+v, want %+v", what, got, want)
		}
	}
	step("first observation", 1, false, at(1), progress{revision: 1, since: began, watched: true, diagnoseAt: at(6)})
	step("a little later", 1, false, at(2), progress{revision: 1, since: began, watched: true, diagnoseAt: at(6)})
	if !m.of("u").progress.neverReady(1) || m.of("u").progress.neverReady(2) || m.of("other").progress.neverReady(1) {
		t.Error("neverReady must be true only for revision 1 of u")
	}
	m.diagnosed("u", "no node", at(6))
	step("diagnosed", 1, false, at(7), progress{revision: 1, since: began, watched: true, why: "no node", diagnoseAt: at(11), diagnoses: 1})
	m.diagnosed("u", "no node", at(11))
	step("diagnosed again", 1, false, at(12), progress{revision: 1, since: began, watched: true, why: "no node", diagnoseAt: at(21), diagnoses: 2})
	step("ready", 1, true, at(30), progress{revision: 1, watched: true, wasReady: true})
	if m.of("u").progress.neverReady(1) {
		t.Error("revision 1 was ready")
	}
	step("unready again", 1, false, at(40), progress{revision: 1, watched: true, wasReady: true, since: at(40), diagnoseAt: at(45)})
	step("the next revision", 2, false, at(50), progress{revision: 2, watched: true, since: at(50), diagnoseAt: at(55)})
	step("a revision with slow hooks", 3, false, at(900), progress{revision: 3, watched: true, since: at(900), diagnoseAt: at(905)})
	m.forget("u")
	step("after a restart, before the deadline", 2, false, at(100), progress{revision: 2, since: began, diagnoseAt: at(105)})
	m.forget("u")
	step("after a restart, after the deadline", 2, false, at(500), progress{revision: 2, late: true, since: at(500), diagnoseAt: at(505)})
	if m.of("u").progress.neverReady(2) {
		t.Error("revision 2 may have been ready before a restart")
	}
}

// TestDiagnosed_IntervalGrows: an object may be unready for days.
func TestDiagnosed_IntervalGrows(t *testing.T) {
	var m memory
	now := time.Now()
	m.progress("u", 1, now, time.Hour, inProgress, now)
	last := time.Duration(0)
	for range 40 {
		m.diagnosed("u", "", now)
		p := m.progress("u", 1, now, time.Hour, inProgress, now)
		if wait := p.diagnoseAt.Sub(now); wait < last || wait > maxDiagnosisWait {
			t.Fatalf("after %s the next diagnosis is in %s", last, wait)
		} else {
			last = wait
		}
	}
	if last != maxDiagnosisWait {
		t.Errorf("the last interval is %s", last)
	}
}

// TestProgress_NoDeadlineWhileOpenEnded: the deadline of the objects begins when the last
// one without a deadline has got one.
func TestProgress_NoDeadlineWhileOpenEnded(t *testing.T) {
	var m memory
	began := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	at := func(minutes int) time.Time { return began.Add(time.Duration(minutes) * time.Minute) }
	since := func(objects objectsReadiness, now time.Time) time.Time {
		return m.progress("u", 1, began, 10*time.Minute, objects, now).since
	}
	for _, step := range []struct {
		what    string
		objects objectsReadiness
		now     int
		since   int
	}{
		{"in progress at first", inProgress, 1, 0},
		{"open-ended", openEnded, 2, 2},
		{"open-ended for hours", openEnded, 500, 500},
		{"in progress again", inProgress, 900, 900},
		{"still in progress", inProgress, 905, 900},
	} {
		if got := since(step.objects, at(step.now)); !got.Equal(at(step.since)) {
			t.Errorf("%s: not ready since %s, want %s", step.what, got, at(step.since))
		}
	}
}
