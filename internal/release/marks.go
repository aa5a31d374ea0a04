package release

import (
	"slices"
	"strconv"

	"github.com/chartwright/chartwright/internal/api"
)

// Marks are what must survive the process and concerns no single revision: which
// requests were answered, and what is held. They stand on the newest revision
// that this operator wrote and go over from each to the next.
type Marks struct {
	// Rollback, Reconcile, Force and Test are the digests of the requests that
	// were answered last.
	Rollback  string
	Reconcile string
	Force     string
	Test      string
	// Refused: the answer to Rollback was no.
	Refused bool
	// Untrusted: the answer was no since the record of the revision is not
	// authenticated.
	Untrusted bool
	// Held is nil where the release follows the spec.
	Held *Held
	// ResumedChart is the digest of the chart that was to be followed when the hold
	// ended, until a revision is made.
	ResumedChart string
}

// Held is a hold: an earlier revision runs, whatever the spec says.
type Held struct {
	// Revision is the one whose manifest runs again, From the one that it took
	// the place of.
	Revision int
	From     int
	// Spec is the digest of the spec that is not followed.
	Spec string
	// Scale is the value of the scaled field in it, empty where the kind has none
	// or an operator wrote it that did not note it.
	Scale string
	// ByFailure: no person asked for it, but the kind's onFailure.
	ByFailure bool
}

// MarksOf returns the marks of a release from its history, newest first.
// Revisions that others wrote have none: the helm CLI copies labels to the
// revisions that it makes, from wherever it takes them. A request to force or to
// verify is answered by a revision that was deployed, and by no try that failed.
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

// Labels returns the marks as a record carries them. Those that are not set
// are empty, so that they can be used to take labels away, too.
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

// refusedUntrusted is the value of the label where the record of a revision is not
// authenticated.
const refusedUntrusted = "untrusted"

// marksFrom reads what Labels wrote.
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
