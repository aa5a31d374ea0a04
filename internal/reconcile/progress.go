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
	// why is what was found out about the first that is not ready, and lookAt
	// when to ask again.
	why    string
	lookAt time.Time
	looks  int
}

// fresh is how old a revision may be that this process has seen from the
// beginning.
const fresh = time.Minute

// progress notes whether the objects of a revision are ready, and returns how
// they come along.
func (m *memory) progress(uid types.UID, revision int, deployed time.Time, ready bool, now time.Time) progress {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.progresses == nil {
		m.progresses = map[types.UID]progress{}
	}
	p, known := m.progresses[uid]
	if !known || p.revision != revision {
		p = progress{revision: revision, since: now, watched: now.Sub(deployed) < fresh}
		if !deployed.IsZero() {
			p.since = deployed
		}
		p.lookAt = now.Add(firstLook)
	}
	switch {
	case ready:
		p = progress{revision: revision, wasReady: true, watched: p.watched}
	case p.since.IsZero():
		p.since, p.lookAt = now, now.Add(firstLook)
	}
	m.progresses[uid] = p
	return p
}

// diagnosed notes why objects are not ready.
func (m *memory) diagnosed(uid types.UID, why string, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.progresses[uid]
	p.why = why
	p.lookAt = now.Add(min(lastLook, firstLook<<min(p.looks, 10)))
	p.looks++
	m.progresses[uid] = p
}

// neverReady tells whether it is known that a revision's objects never were
// ready.
func (m *memory) neverReady(uid types.UID, revision int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, known := m.progresses[uid]
	return known && p.revision == revision && p.watched && !p.wasReady
}

// touch notes that a release's objects were just applied.
func (m *memory) touch(uid types.UID, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.touched == nil {
		m.touched = map[types.UID]time.Time{}
	}
	m.touched[uid] = at
}

// touchedAt returns when they last were, zero where this process did not.
func (m *memory) touchedAt(uid types.UID) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.touched[uid]
}
