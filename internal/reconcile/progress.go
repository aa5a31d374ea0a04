package reconcile

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// progress is how a revision's objects come along, as this process has seen it.
type progress struct {
	revision int
	// since is when the objects were last not ready any more, or the revision
	// was deployed; zero while they are ready.
	since time.Time
	// wasReady: they were, at some time; watched: this process has seen the
	// revision from the beginning, and would know.
	wasReady bool
	watched  bool
	// openEnded: when they were last observed, none had a deadline.
	openEnded bool
	// late: the revision's time was up when this process saw it first, not ready.
	// Whether it ever was nobody knows.
	late bool
	// why is what was found out about the first that is not ready, and lookAt
	// when to ask again.
	why    string
	lookAt time.Time
	looks  int
}

// fresh is how old a revision may be that this process has seen from the
// beginning.
const fresh = time.Minute

// progress notes how the objects of a revision are, and returns how long they
// have not been ready. That time does not run while no object has a deadline.
func (m *memory) progress(uid types.UID, revision int, deployed time.Time, within time.Duration, standing objectsStanding, now time.Time) (p progress) {
	m.with(uid, func(r *remembered) {
		if r.progress.revision != revision {
			r.progress = firstSeen(r.progress.revision, revision, deployed, within, now)
		}
		switch {
		case standing == allReady:
			r.progress = progress{revision: revision, wasReady: true, watched: r.progress.watched}
		case r.progress.since.IsZero():
			r.progress.since, r.progress.lookAt = now, now.Add(firstLook)
		case standing == openEnded, r.progress.openEnded:
			r.progress.since = now
		}
		r.progress.openEnded = standing == openEnded
		p = r.progress
	})
	return p
}

// firstSeen is how a revision is that this process has not looked at. Its time
// does not begin anew with each process, unless it was up: what ran for weeks
// may have been ready for as long.
func firstSeen(before, revision int, deployed time.Time, within time.Duration, now time.Time) progress {
	p := progress{revision: revision, since: now, lookAt: now.Add(firstLook)}
	age := now.Sub(deployed)
	switch {
	case before > 0 && before < revision:
		// It has come while this process looked on. Helm's time is that at which
		// its action began, which may have waited for hooks.
		p.watched = true
	case age < within:
		p.since, p.watched = deployed, age < fresh
	default:
		p.late = true
	}
	return p
}

// diagnosed notes why objects are not ready.
func (m *memory) diagnosed(uid types.UID, why string, now time.Time) {
	m.look(uid, func(r *remembered) {
		r.progress.why = why
		r.progress.lookAt = now.Add(min(lastLook, firstLook<<min(r.progress.looks, 10)))
		r.progress.looks++
	})
}

// neverReady reports whether it is known that the objects of a revision never were
// ready.
func (p progress) neverReady(revision int) bool {
	return p.revision == revision && p.watched && !p.wasReady
}
