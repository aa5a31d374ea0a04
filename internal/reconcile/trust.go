package reconcile

import (
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/helm"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/release"
)

// Everyone with write access to Secrets in a namespace can change the release
// records there. Whether the operator has signed what a record stores is known
// when an action has read it; what is remembered of that is lost with the process,
// which costs one more read.

// verdicts holds why records must not be used, by their UIDs. The zero value is
// ready.
type verdicts struct {
	mu    sync.Mutex
	known map[types.UID]verdict
}

// verdict is about one state of a record.
type verdict struct {
	resourceVersion string
	// inputs is the digest of what the release was to be rendered from, where the
	// verdict depends on it.
	inputs string
	why    string
}

func (s *verdicts) add(record release.Record, inputs, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = map[types.UID]verdict{}
	}
	s.known[record.UID] = verdict{resourceVersion: record.ResourceVersion, inputs: inputs, why: why}
}

// of returns why a record must not be used, empty where nothing is known against
// it.
func (s *verdicts) of(record release.Record, inputs string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.known[record.UID]
	if !ok || known.resourceVersion != record.ResourceVersion || known.inputs != inputs {
		return ""
	}
	return known.why
}

// observeSignature finds out whether the newest record is to be signed, and from
// when on.
func (r *Reconciler) observeSignature(v *view) {
	o := &v.observation
	if o.Newest == nil || !o.Newest.Ours || !o.Newest.Genuine || o.Newest.Untrusted || o.Newest.Status != api.StatusDeployed {
		return
	}
	if r.Helm.SignedByCurrentKey(v.history[0]) {
		r.memory.signed(v.cr.GetUID())
		return
	}
	if wait := r.memory.signAt(v.cr.GetUID(), o.Now, r.reserveSignature).Sub(o.Now); wait > 0 {
		v.signIn = wait
		return
	}
	o.Unsigned = true
}

// reserveSignature returns when the next record may be signed. An operator that
// finds many unsigned records does not sign them all at once.
func (r *Reconciler) reserveSignature(now time.Time) time.Time {
	if r.Signatures == nil {
		return now
	}
	return now.Add(r.Signatures.ReserveN(now, 1).DelayFrom(now))
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

// observeRefusal turns a request for a revision whose record was found not to be
// usable into one that cannot be met.
func (r *Reconciler) observeRefusal(v *view) {
	request, target := v.observation.Request, 0
	switch {
	case request != nil:
		target = request.Revision
	case v.marks.Untrusted && v.asks.Rollback != nil && token(v.asks.Rollback.Value) == v.marks.Rollback:
		target = available(v, *v.asks.Rollback)
	}
	for _, record := range v.history {
		if target > 0 && record.Revision == target {
			v.untrustedTarget = r.unrepeatable.of(record, v.digests.Input)
		}
	}
	if request != nil && v.untrustedTarget != "" {
		request.Revision = 0
	}
}

// concludeUntrusted remembers that a record must not be used. It reports whether
// the failure is to be counted and retried with backoff.
func (r *Reconciler) concludeUntrusted(v *view, d plan.Decision, err error) (failed bool) {
	why := err.Error()
	if action, ok := errors.AsType[*helm.ActionError](err); ok {
		why = action.Error()
	}
	if d.Step == plan.StepRollback {
		for _, record := range v.history {
			if record.Revision == d.Revision {
				r.unrepeatable.add(record, v.digests.Input, why)
			}
		}
		// A request is refused next, and a failed upgrade tried again.
		return d.State == plan.StateHeld
	}
	r.untrusted.add(v.history[0], "", why)
	what := "; the release is rendered from the chart again"
	if v.observation.Held != nil && !v.observation.Held.Over || v.observation.Postponed {
		what = "; nothing from it is applied until the release is upgraded"
	}
	r.Recorder.Event(v.cr, corev1.EventTypeWarning, api.EventRecordUntrusted, cut(fmt.Sprintf("Revision %d: %s%s", v.history[0].Revision, why, what)))
	return false
}
