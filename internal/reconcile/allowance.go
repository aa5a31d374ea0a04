package reconcile

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// burst is how many actions a custom resource may begin at once, and interval
	// is how often one more is allowed. No user who works by hand notices either,
	// and a client that edits all the time causes one action per interval.
	burst    = 10
	interval = 6 * time.Second
)

// allowance is a token bucket for the actions that authors of custom resources
// can cause, see decide.Limited. It is the time at which the bucket is full; the
// zero time is a full bucket.
type allowance time.Time

// spend takes one token.
func (a *allowance) spend(now time.Time) {
	full := time.Time(*a)
	if full.Before(now) {
		full = now
	}
	*a = allowance(full.Add(interval))
}

// earliest returns when there is a token.
func (a allowance) earliest() time.Time {
	if time.Time(a).IsZero() {
		return time.Time{}
	}
	return time.Time(a).Add(-(burst - 1) * interval)
}

// spend notes that a limited action of a custom resource has begun.
func (m *memory) spend(uid types.UID, now time.Time) {
	m.with(uid, func(r *remembered) {
		r.allowance.spend(now)
		r.reported = false
	})
}

// earliest returns when a custom resource may begin the next limited action.
func (m *memory) earliest(uid types.UID) (at time.Time) {
	m.look(uid, func(r *remembered) { at = r.allowance.earliest() })
	return at
}

// report notes that a report is made while the next action waits for the
// allowance, and returns whether one was made before. A client that edits all the
// time causes one report per action.
func (m *memory) report(uid types.UID) (before bool) {
	m.with(uid, func(r *remembered) { before, r.reported = r.reported, true })
	return before
}
