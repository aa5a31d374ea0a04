package reconcile

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/helm"
	"github.com/chartwright/chartwright/internal/inventory"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/reconcile/status"
)

// memory holds what this process remembers of each custom resource, by its UID.
// A restart loses it. Then a failed action is retried once without backoff, and
// periods and deadlines that had passed begin again. The zero value is ready.
type memory struct {
	table[types.UID, *remembered]
}

// remembered is what is remembered of one custom resource. Failures and facts are
// replaced, never changed.
type remembered struct {
	// failure is that of the last attempt to reach the target of the release, and
	// repairFailure that of the last drift correction; nil if it succeeded.
	failure       *status.Failure
	repairFailure *status.Failure
	// applied is when every object was last applied, and touched when any object was.
	applied  time.Time
	touched  time.Time
	progress progress
	// unready reports that objects were not ready since the release was last Ready.
	unready bool
	// drifted holds the drifted objects that the metric has counted.
	drifted map[apply.Key]bool
	// repairs counts the drift corrections of each object.
	repairs map[apply.Key]*fight
	// uninstalled reports that nothing is left of the release.
	uninstalled bool
	// request is the last rollback request that was not answered when it was
	// observed.
	request request
	// interrupted is the revision that was marked as failed because the operator had stopped
	// during its action.
	interrupted int
	// signAt is when the newest record may be signed.
	signAt time.Time
	// facts was computed from the spec when it was last expanded, and evaluated are
	// the results of templates over the custom resource.
	facts     *specFacts
	evaluated evaluated
	published published
	// orphan reports that the custom resource was deleted with propagationPolicy
	// Orphan.
	orphan bool
	// allowance limits actions. reported: the status was written since the last
	// action began, while the next one waits for the allowance.
	allowance allowance
	reported  bool
	// stale is the target of the last action if it ended with release.ErrStale, and staleSince
	// when the first such action in a row ended.
	stale      plan.TargetKey
	staleSince time.Time
	// unreadSince is since when the inputs cannot be read.
	unreadSince time.Time
}

// about returns the failure of drift correction or the other one.
func (r *remembered) about(repair bool) **status.Failure {
	if repair {
		return &r.repairFailure
	}
	return &r.failure
}

// with calls do with what is remembered of a custom resource.
func (m *memory) with(uid types.UID, do func(*remembered)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.entries[uid] == nil {
		m.putLocked(uid, &remembered{})
	}
	do(m.entries[uid])
}

// ifKnown is with for known custom resources only: an action may end after its
// custom resource is gone.
func (m *memory) ifKnown(uid types.UID, do func(*remembered)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.entries[uid]; r != nil {
		do(r)
	}
}

// of returns a copy of what is remembered of a custom resource, empty for an
// unknown one. The caller must not read its maps.
func (m *memory) of(uid types.UID) (known remembered) {
	m.ifKnown(uid, func(r *remembered) { known = *r })
	return known
}

// put stores a failure, counts it, and reports whether it is news: its target,
// reason or message differs from that of the previous failure.
func (m *memory) put(uid types.UID, repair bool, f status.Failure) (news bool) {
	m.with(uid, func(r *remembered) {
		before := cmp.Or(*r.about(repair), &status.Failure{})
		if before.Target == f.Target {
			f.Attempts, f.Transients = before.Attempts, before.Transients
		}
		f.Attempts++
		if f.Transient {
			f.Transients++
		}
		*r.about(repair) = &f
		news = before.Target != f.Target || before.Reason != f.Reason || before.Message != f.Message
	})
	return news
}

// unreported is how long a problem that usually ends soon is not reported: actions find another
// state than the watches have delivered, or inputs cannot be read.
const unreported = 2 * time.Second

// lasts reports whether a problem has lasted for longer than unreported. It keeps in since when
// the problem began.
func lasts(since *time.Time, is bool, now time.Time) bool {
	switch {
	case !is:
		*since = time.Time{}
	case since.IsZero():
		*since = now
	}
	return is && now.Sub(*since) > unreported
}

// stale notes whether an action with a target has ended with release.ErrStale, and reports
// whether all actions with the target have for longer than unreported.
func (m *memory) stale(uid types.UID, is bool, target plan.TargetKey, now time.Time) (lasting bool) {
	m.ifKnown(uid, func(r *remembered) {
		if r.stale != target {
			r.stale, r.staleSince = target, time.Time{}
		}
		lasting = lasts(&r.staleSince, is, now)
	})
	return lasting
}

// reached forgets the failure to reach a target that the release has reached.
func (m *memory) reached(uid types.UID, target plan.TargetKey) {
	m.ifKnown(uid, func(r *remembered) {
		if r.failure != nil && r.failure.Target == target {
			r.failure = nil
		}
	})
}

// due ends the backoff of some failures, and returns their custom resources.
func (m *memory) due(these func(*status.Failure) bool) (owners []types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for uid, r := range m.entries {
		for _, f := range []**status.Failure{&r.failure, &r.repairFailure} {
			if *f != nil && these(*f) {
				due := **f
				due.At = time.Time{}
				*f = &due
				owners = append(owners, uid)
			}
		}
	}
	return owners
}

// repairDue ends the backoff of a failed correction of drift, and reports whether there is one.
func (m *memory) repairDue(uid types.UID) (failed bool) {
	m.ifKnown(uid, func(r *remembered) {
		if failed = r.repairFailure != nil; failed {
			due := *r.repairFailure
			due.At = time.Time{}
			r.repairFailure = &due
		}
	})
	return failed
}

// outputsDue ends the backoff of all outputs.
func (m *memory) outputsDue() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.entries {
		r.published.next = time.Time{}
	}
}

// appliedAt returns when all objects were last applied. If that is unknown, it
// notes and returns first.
func (m *memory) appliedAt(uid types.UID, first time.Time) (at time.Time) {
	m.with(uid, func(r *remembered) {
		if r.applied.IsZero() {
			r.applied = first
		}
		at = r.applied
	})
	return at
}

// found notes which objects have drifted, and returns those that had not at the
// last call.
func (m *memory) found(uid types.UID, drift []inventory.Drift) (anew []apply.Key) {
	m.with(uid, func(r *remembered) {
		before := r.drifted
		r.drifted = nil
		for _, d := range drift {
			if r.drifted == nil {
				r.drifted = make(map[apply.Key]bool, len(drift))
			}
			r.drifted[d.Key] = true
			if !before[d.Key] {
				anew = append(anew, d.Key)
			}
		}
	})
	return anew
}

// orphan notes that a custom resource was deleted with propagationPolicy Orphan.
func (m *memory) orphan(uid types.UID) {
	m.with(uid, func(r *remembered) { r.orphan = true })
}

// request returns the request with a token as it was first observed, which may
// be now.
func (m *memory) request(uid types.UID, token string, first func() request) (asked request) {
	m.with(uid, func(r *remembered) {
		if r.request.token != token {
			r.request = first()
		}
		asked = r.request
	})
	return asked
}

// signAt returns when the record of a custom resource may be signed. The first
// call decides.
func (m *memory) signAt(uid types.UID, now time.Time, reserve func(time.Time) time.Time) (at time.Time) {
	m.with(uid, func(r *remembered) {
		if r.signAt.IsZero() {
			r.signAt = reserve(now)
		}
		at = r.signAt
	})
	return at
}

// An object that drifts as often as it is corrected is in a fight, with a webhook
// or another controller. The time between its corrections then doubles.
const (
	fightRepairs = 5
	fightWindow  = time.Minute
	// maxPause bounds the time between two corrections in a fight.
	maxPause = 10 * time.Minute
)

// fight holds the drift corrections of one object.
type fight struct {
	// repairs holds the times of the newest corrections, oldest first.
	repairs []time.Time
	// pause is the time to the next correction; 0 outside a fight.
	pause time.Duration
	// pointers are the fields that the newest correction changed.
	pointers []string
}

// repaired counts a correction and reports whether a fight has begun with it.
func (f *fight) repaired(at time.Time) bool {
	if n := len(f.repairs); n > 0 && at.Sub(f.repairs[n-1]) > max(fightWindow, 2*f.pause) {
		*f = fight{}
	}
	f.repairs = append(f.repairs, at)
	if len(f.repairs) > fightRepairs {
		f.repairs = f.repairs[1:]
	}
	if f.pause > 0 {
		f.pause = min(2*f.pause, maxPause)
		return false
	}
	if len(f.repairs) == fightRepairs && at.Sub(f.repairs[0]) <= fightWindow {
		f.pause = fightWindow / fightRepairs
		return true
	}
	return false
}

// repaired counts the correction of an object and reports whether a fight has
// begun with it.
func (m *memory) repaired(uid types.UID, one helm.Repaired, at time.Time) (begun bool) {
	m.with(uid, func(r *remembered) {
		if r.repairs == nil {
			r.repairs = map[apply.Key]*fight{}
		}
		f := cmp.Or(r.repairs[one.Key], &fight{})
		r.repairs[one.Key] = f
		begun = f.repaired(at)
		f.pointers = one.Pointers
	})
	return begun
}

// pause returns how long an object must not be corrected yet, 0 if it may be
// corrected now, and the fields of a fight, nil if the object is in none.
func (m *memory) pause(uid types.UID, key apply.Key, now time.Time) (wait time.Duration, fighting *status.Contested) {
	m.ifKnown(uid, func(r *remembered) {
		if f := r.repairs[key]; f != nil && f.pause > 0 {
			wait = max(0, f.repairs[len(f.repairs)-1].Add(f.pause).Sub(now))
			fighting = &status.Contested{Key: key, Pointers: f.pointers}
		}
	})
	return wait, fighting
}

const (
	// burst is how many actions a custom resource may begin at once, and interval is how
	// often one more is allowed. Users who work by hand stay below both. A client that
	// edits without pause causes one action per interval.
	burst    = 10
	interval = 6 * time.Second
)

// allowance is a token bucket for the actions that authors of custom resources can
// cause, see plan.Limited. Its value is the time at which the bucket is full. The zero
// time is a full bucket.
type allowance time.Time

// spend takes one token.
func (a *allowance) spend(now time.Time) {
	full := time.Time(*a)
	if full.Before(now) {
		full = now
	}
	*a = allowance(full.Add(interval))
}

// earliest returns when the next token is available.
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

// report notes that the status was reported while the next action waits for the
// allowance. So a client that edits without pause causes one report per action.
func (m *memory) report(uid types.UID) {
	m.ifKnown(uid, func(r *remembered) { r.reported = true })
}
