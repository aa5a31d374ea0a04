package reconcile

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/inventory"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/reconcile/status"
)

// memory holds what this process remembers of each custom resource, by its UID.
// It is lost with the process, which costs one more try, a period and a deadline
// that was over: they begin anew. The zero value is ready.
type memory struct {
	mu    sync.Mutex
	known map[types.UID]*remembered
}

// remembered is what is remembered of one custom resource.
type remembered struct {
	// failure is of the last try to bring the release to where it is to be, and
	// repairFailure of the last to repair what runs; nil where it succeeded.
	failure       *status.Failure
	repairFailure *status.Failure
	// applied is when every object was last applied, and touched when any was.
	applied  time.Time
	touched  time.Time
	progress progress
	// damaged holds the objects whose damage was counted, while it lasts.
	damaged map[apply.Key]bool
	// uninstalled: nothing is left of the release.
	uninstalled bool
	// request is the last rollback request that was not answered when it was
	// observed.
	request request
	// signAt is when the newest record may be signed.
	signAt time.Time
	// facts is what followed from the spec when it last was expanded, and evaluated
	// what templates over the custom resource gave.
	facts     *specFacts
	evaluated evaluated
	// orphan: the custom resource was deleted with propagationPolicy Orphan.
	orphan bool
	// allowance limits actions. reported: the status was written since the last of
	// them began, while the next one waits for the allowance.
	allowance allowance
	reported  bool
}

// about returns which of the two failures is meant.
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
	if m.known == nil {
		m.known = map[types.UID]*remembered{}
	}
	if m.known[uid] == nil {
		m.known[uid] = &remembered{}
	}
	do(m.known[uid])
}

// look is with for what is no reason to remember anything: an action may end
// after its custom resource is gone.
func (m *memory) look(uid types.UID, do func(*remembered)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.known[uid]; r != nil {
		do(r)
	}
}

// get returns a copy of the failure, nil where the last try succeeded.
func (m *memory) get(uid types.UID, repair bool) (last *status.Failure) {
	m.look(uid, func(r *remembered) {
		if f := *r.about(repair); f != nil {
			last = new(*f)
		}
	})
	return last
}

// put stores a failure, counts it, and tells whether it is news: another aim,
// reason or message than that of the failure before.
func (m *memory) put(uid types.UID, repair bool, f status.Failure) (news bool) {
	m.with(uid, func(r *remembered) {
		before := *r.about(repair)
		if before == nil {
			before = &status.Failure{}
		}
		f.Attempts = 1
		if before.Target == f.Target {
			f.Attempts = before.Attempts + 1
		}
		*r.about(repair) = &f
		news = before.Target != f.Target || before.Reason != f.Reason || before.Message != f.Message
	})
	return news
}

// succeeded forgets the failure.
func (m *memory) succeeded(uid types.UID, repair bool) {
	m.look(uid, func(r *remembered) { *r.about(repair) = nil })
}

// reached forgets the failure to bring about what is there now.
func (m *memory) reached(uid types.UID, target plan.TargetKey) {
	m.look(uid, func(r *remembered) {
		if r.failure != nil && r.failure.Target == target {
			r.failure = nil
		}
	})
}

// permit makes whatever was forbidden due for another try.
func (m *memory) permit() { m.due(func(f *status.Failure) bool { return f.Forbidden }) }

// due makes some failures due for another try, and returns whose they are.
func (m *memory) due(these func(*status.Failure) bool) (owners []types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for uid, r := range m.known {
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

// appliedAll notes when every object was applied.
func (m *memory) appliedAll(uid types.UID, at time.Time) {
	m.with(uid, func(r *remembered) { r.applied = at })
}

// appliedAt returns when all objects were last applied. Where that is unknown, it
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

// touch notes that objects were just applied.
func (m *memory) touch(uid types.UID, at time.Time) {
	m.with(uid, func(r *remembered) { r.touched = at })
}

// touchedAt returns when they last were, zero where this process did not.
func (m *memory) touchedAt(uid types.UID) (at time.Time) {
	m.look(uid, func(r *remembered) { at = r.touched })
	return at
}

// found notes which objects are damaged, and returns those that were not when
// it was last told.
func (m *memory) found(uid types.UID, drift []inventory.Drift) (anew []apply.Key) {
	m.with(uid, func(r *remembered) {
		before := r.damaged
		r.damaged = nil
		for _, d := range drift {
			if r.damaged == nil {
				r.damaged = make(map[apply.Key]bool, len(drift))
			}
			r.damaged[d.Key] = true
			if !before[d.Key] {
				anew = append(anew, d.Key)
			}
		}
	})
	return anew
}

// uninstall notes that nothing is left of a release.
func (m *memory) uninstall(uid types.UID) {
	m.with(uid, func(r *remembered) { r.uninstalled = true })
}

func (m *memory) isUninstalled(uid types.UID) (is bool) {
	m.look(uid, func(r *remembered) { is = r.uninstalled })
	return is
}

// orphan notes that a custom resource was deleted with propagationPolicy Orphan.
func (m *memory) orphan(uid types.UID) {
	m.with(uid, func(r *remembered) { r.orphan = true })
}

func (m *memory) isOrphan(uid types.UID) (is bool) {
	m.look(uid, func(r *remembered) { is = r.orphan })
	return is
}

func (m *memory) forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, uid)
}

// recalled returns what is remembered of a custom resource of this digest and
// these versions of sources, nil if it was another.
func (m *memory) recalled(uid types.UID, digest, versions string) (known *specFacts) {
	if digest == "" {
		return nil
	}
	m.look(uid, func(r *remembered) {
		if facts := r.facts; facts != nil && facts.digest == digest && facts.versions == versions {
			known = facts
		}
	})
	return known
}

// request returns the request of that token as it was first observed, which may
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

// unrequest forgets a request that was answered or taken back: the same value may
// be asked for again.
func (m *memory) unrequest(uid types.UID) {
	m.look(uid, func(r *remembered) { r.request = request{} })
}

// signAt returns when the record of a custom resource may be signed, which is
// decided when it is asked first.
func (m *memory) signAt(uid types.UID, now time.Time, reserve func(time.Time) time.Time) (at time.Time) {
	m.with(uid, func(r *remembered) {
		if r.signAt.IsZero() {
			r.signAt = reserve(now)
		}
		at = r.signAt
	})
	return at
}

// signed forgets the turn, since the key may be replaced once more.
func (m *memory) signed(uid types.UID) {
	m.look(uid, func(r *remembered) { r.signAt = time.Time{} })
}

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
