package release

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/chartwright/chartwright/internal/api"
)

// Marks are state of a release that is stored across restarts and does not belong to a
// single revision: the answered requests and the hold. They are labels of the newest
// revision that Chartwright wrote, and are copied to each new revision.
type Marks struct {
	// Rollback, Reconcile, Force and Test are the digests of the last answered requests.
	Rollback  string
	Reconcile string
	Force     string
	Test      string
	// Refused reports that the rollback was refused.
	Refused bool
	// Untrusted reports that the rollback was refused because the record of the revision
	// is not authenticated.
	Untrusted bool
	// Held is the hold, or nil if the release follows the spec.
	Held *Held
	// ResumedChart is the digest of the current chart when the hold ended, until a new
	// revision is created.
	ResumedChart string
}

// Held is a hold: the release stays at an earlier revision and does not follow the
// spec.
type Held struct {
	// Revision is the earlier revision whose manifest is deployed. From is the revision
	// that it replaced.
	Revision int
	From     int
	// Spec is the digest of the spec that is not followed.
	Spec string
	// Scale is the value of the scaled field in that spec. It is empty if the kind has
	// no scaled field, or if an older operator wrote the hold.
	Scale string
	// ByFailure reports that the kind's onFailure caused the hold, not a user.
	ByFailure bool
}

// MarksOf returns the marks of a release from its history, newest first. It ignores
// revisions of other programs, to which the helm CLI copies labels. Force and reconcile
// requests are answered only by a revision that was deployed, not by a failed one.
func MarksOf(history []Record) Marks {
	newest := slices.IndexFunc(history, Record.Written)
	if newest < 0 {
		return Marks{}
	}
	marks := history[newest].Marks
	marks.Force, marks.Reconcile = "", ""
	for _, r := range history[newest:] {
		if r.Written() && r.WasDeployed() {
			marks.Force, marks.Reconcile = r.Marks.Force, r.Marks.Reconcile
			break
		}
	}
	return marks
}

// Previous returns the revision that a rollback without a number selects: the newest one that
// became ready before the held or the newest revision, 0 for none. With current, because the
// newest change has made no revision, it may be that revision itself.
func Previous(history []Record, current bool) int {
	held := MarksOf(history).Held
	for _, r := range history {
		last := cmp.Or(held, &Held{Revision: history[0].Revision}).Revision
		if r.WasGood() && (r.Revision < last || current && r.Revision == last) {
			return r.Revision
		}
	}
	return 0
}

// Excess returns the records to delete if at most limit revisions that were deployed are
// kept, newest first. Of those that failed, only the newest is kept.
func Excess(history []Record, limit int) []Record {
	var drop []Record
	deployed, failed := 0, 0
	held := MarksOf(history).Held
	for i, record := range history {
		if held != nil && held.Revision == record.Revision {
			// A rollback to this revision may have to be repeated.
			continue
		}
		switch record.Status {
		case api.StatusDeployed, api.StatusSuperseded:
			deployed++
			if deployed > limit && record.Status != api.StatusDeployed {
				drop = append(drop, record)
			}
		case api.StatusFailed:
			failed++
			if failed > 1 && i > 0 {
				drop = append(drop, record)
			}
		}
	}
	return drop
}

// Labels returns the labels of the marks. Unset marks have empty values, which can be
// used to remove labels.
func (m Marks) Labels() map[string]string {
	labels := map[string]string{
		api.LabelRollbackRequest:  m.Rollback,
		api.LabelReconcileRequest: m.Reconcile,
		api.LabelForceRequest:     m.Force,
		api.LabelTestRequest:      m.Test,
		api.LabelRollbackRefused:  "",
		api.LabelHeldRevision:     "",
		api.LabelHeldFrom:         "",
		api.LabelHeldSpec:         "",
		api.LabelHeldScale:        "",
		api.LabelHeldBy:           "",
		api.LabelResumedChart:     m.ResumedChart,
	}
	if m.Refused {
		labels[api.LabelRollbackRefused] = "true"
		if m.Untrusted {
			labels[api.LabelRollbackRefused] = refusedUntrusted
		}
	}
	if m.Held != nil {
		labels[api.LabelHeldRevision] = strconv.Itoa(m.Held.Revision)
		labels[api.LabelHeldFrom] = strconv.Itoa(m.Held.From)
		labels[api.LabelHeldSpec] = m.Held.Spec
		labels[api.LabelHeldScale] = m.Held.Scale
		if m.Held.ByFailure {
			labels[api.LabelHeldBy] = api.HeldByFailure
		}
	}
	return labels
}

// refusedUntrusted is the value of the label if the record of the revision is not
// authenticated.
const refusedUntrusted = "untrusted"

// marksFrom parses the result of Labels.
func marksFrom(labels map[string]string) Marks {
	m := Marks{
		Rollback:  labels[api.LabelRollbackRequest],
		Reconcile: labels[api.LabelReconcileRequest],
		Force:     labels[api.LabelForceRequest],
		Test:      labels[api.LabelTestRequest],
		Refused:   labels[api.LabelRollbackRefused] == "true" || labels[api.LabelRollbackRefused] == refusedUntrusted,
		Untrusted: labels[api.LabelRollbackRefused] == refusedUntrusted,

		ResumedChart: labels[api.LabelResumedChart],
	}
	if revision, err := strconv.Atoi(labels[api.LabelHeldRevision]); err == nil && revision > 0 {
		m.Held = &Held{Revision: revision, Spec: labels[api.LabelHeldSpec], Scale: labels[api.LabelHeldScale], ByFailure: labels[api.LabelHeldBy] == api.HeldByFailure}
		m.Held.From, _ = strconv.Atoi(labels[api.LabelHeldFrom])
	}
	return m
}
