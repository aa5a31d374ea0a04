package reconcile

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// progress is the progress of a revision's objects towards readiness, as this process
// has observed it.
type progress struct {
	revision int
	// since is when the objects became unready, or when the revision was deployed;
	// zero while they are ready.
	since time.Time
	// wasReady reports that the objects were ready at some time. watched reports that
	// this process has observed the revision from the beginning, so that wasReady is
	// reliable.
	wasReady bool
	watched  bool
	// openEnded reports that none of the unready objects had a deadline when they were
	// last observed.
	openEnded bool
	// late reports that the revision was not ready and its deadline had passed when
	// this process first observed it. Whether it was ever ready is unknown.
	late bool
	// why is the last diagnosis of the first unready object, and diagnoseAt the time of
	// the next one.
	why        string
	diagnoseAt time.Time
	diagnoses  int
}

// fresh is the maximum age of a revision that this process counts as observed from
// the beginning.
const fresh = time.Minute

// progress updates and returns the progress of a revision's objects. Time without a
// deadline of an unready object does not count.
func (m *memory) progress(uid types.UID, revision int, deployed time.Time, within time.Duration, readiness objectsReadiness, now time.Time) (p progress) {
	m.with(uid, func(r *remembered) {
		if r.progress.revision != revision {
			r.progress = firstObservedProgress(r.progress.revision, revision, deployed, within, now)
		}
		switch {
		case readiness == allReady:
			r.progress = progress{revision: revision, wasReady: true, watched: r.progress.watched}
		case r.progress.since.IsZero():
			r.progress.since, r.progress.diagnoseAt = now, now.Add(firstDiagnosis)
		case readiness == openEnded, r.progress.openEnded:
			r.progress.since = now
		}
		r.progress.openEnded = readiness == openEnded
		p = r.progress
	})
	return p
}

// firstObservedProgress returns the progress of a revision that this process observes
// for the first time. A restart does not extend the deadline, unless it has passed: a
// revision that ran for weeks may have been ready for weeks.
func firstObservedProgress(before, revision int, deployed time.Time, within time.Duration, now time.Time) progress {
	p := progress{revision: revision, since: now, diagnoseAt: now.Add(firstDiagnosis)}
	age := now.Sub(deployed)
	switch {
	case before > 0 && before < revision:
		// This process has deployed the revision. Helm's time is the start of its action,
		// which may have waited for hooks.
		p.watched = true
	case age < within:
		p.since, p.watched = deployed, age < fresh
	default:
		p.late = true
	}
	return p
}

// diagnosed stores why objects are not ready.
func (m *memory) diagnosed(uid types.UID, why string, now time.Time) {
	m.ifKnown(uid, func(r *remembered) {
		r.progress.why = why
		r.progress.diagnoseAt = now.Add(min(maxDiagnosisWait, firstDiagnosis<<min(r.progress.diagnoses, 10)))
		r.progress.diagnoses++
	})
}

// neverReady reports whether it is known that the objects of a revision never were
// ready.
func (p progress) neverReady(revision int) bool {
	return p.revision == revision && p.watched && !p.wasReady
}
