package reconcile

import (
	"testing"
	"time"
)

// TestAllowance_BurstThenInterval: the first actions begin at once, and then one
// per interval, regardless of the number of requests.
func TestAllowance_BurstThenInterval(t *testing.T) {
	var m memory
	start := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	begun := 0
	for now := start; now.Before(start.Add(time.Minute)); now = now.Add(100 * time.Millisecond) {
		if m.of("one").allowance.earliest().After(now) {
			continue
		}
		m.spend("one", now)
		begun++
		if begun == burst && now.After(start.Add(burst*100*time.Millisecond)) {
			t.Errorf("the first %d actions took until %s", burst, now.Sub(start))
		}
	}
	if want := burst + int(time.Minute/interval) - 1; begun < want || begun > want+1 {
		t.Errorf("%d actions began in a minute, want about %d", begun, want)
	}
	if !m.of("two").allowance.earliest().IsZero() {
		t.Error("another custom resource has to wait")
	}
	later := start.Add(time.Minute + burst*interval)
	for i := range burst {
		if m.of("one").allowance.earliest().After(later) {
			t.Errorf("after a pause, %d actions are allowed at once, want %d", i, burst)
		}
		m.spend("one", later)
	}
	if wait := m.of("one").allowance.earliest().Sub(later); wait != interval {
		t.Errorf("the next action waits for %s, want %s", wait, interval)
	}
}

// TestAllowance_OneReportPerAction: without remaining allowance, edits cause at most
// one status patch per action.
func TestAllowance_OneReportPerAction(t *testing.T) {
	var m memory
	for range 2 {
		m.spend("one", time.Now())
		if m.of("one").reported {
			t.Error("the first report after an action is skipped")
		}
		m.report("one")
		if !m.of("one").reported {
			t.Error("a second report is made without an action")
		}
	}
}
