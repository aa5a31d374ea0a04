package reconcile

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/api/annotations"
	"github.com/chartwright/chartwright/internal/customresource"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/reconcile/status"
	"github.com/chartwright/chartwright/internal/release"
)

// observeRequests observes the requests in annotations, and which of them were
// answered.
func (r *Reconciler) observeRequests(v *snapshot) {
	o := &v.Observation
	asks := v.Requests
	o.Paused = asks.Pause != annotations.PauseNot
	o.PausedDeletion = asks.Pause == annotations.PauseIncludingDeletion
	o.Orphan = asks.Orphan || o.Deleting && r.orphaned(v.CR)
	o.RetryToken = status.Token(asks.Reconcile) + status.Token(asks.Force) + status.Token(asks.Approve) + status.Token(asks.Switches())
	if !o.Adoptable {
		v.Marks = release.MarksOf(v.History)
	}
	o.VerifyRequested = status.Unanswered(asks.Reconcile, v.Marks.Reconcile) || v.forced()
	o.TestRequested = status.Unanswered(asks.Test, v.Marks.Test)
	if held := v.Marks.Held; held != nil {
		o.Held = &plan.Held{Revision: held.Revision, Token: v.Marks.Rollback, Expired: r.edited(v, held.Spec, held.Scale), ByFailure: held.ByFailure}
		v.Scaling = r.waitingScale(v)
	}
	v.Excess = release.Excess(v.History, r.Kind.HistoryLimit())
	o.Retries = r.Kind.FailureRetries()
	o.LastGood = r.lastGood(v)
	o.Inconsistent = untidy(v.History)
	if r.unstored(v) {
		v.Previous = release.Previous(v.Kept(), true)
	}
	if asked := asks.Rollback; asked != nil && !asked.Malformed() && status.Unanswered(asked.Value, v.Marks.Rollback) {
		r.observeRequest(v, *asked)
	} else {
		// A request that was answered or withdrawn may come again with the same value.
		r.memory.ifKnown(v.CR.GetUID(), func(m *remembered) { m.request = request{} })
	}
}

// forced reports whether there is an unanswered request for force.
func (v *snapshot) forced() bool { return status.Unanswered(v.Requests.Force, v.Marks.Force) }

// lastGood returns the newest earlier revision that was good and can be rolled back
// to, 0 for none.
func (r *Reconciler) lastGood(v *snapshot) int {
	for i, record := range v.Kept() {
		if i > 0 && record.WasGood() && r.unrepeatable.of(record, v.digests.Input) == "" {
			return record.Revision
		}
	}
	return 0
}

// untidy reports whether the records are inconsistent: more than one revision is
// deployed, one of our revisions is pending although another program has created a
// newer one, or an uninstall was interrupted before a newer revision was deployed.
func untidy(history []release.Record) bool {
	deployed := 0
	for i, record := range history {
		if record.Status == api.StatusDeployed {
			deployed++
		}
		if i > 0 && record.Written() && api.Pending(record.Status) || deployed > 0 && record.Status == api.StatusUninstalling {
			return true
		}
	}
	return deployed > 1
}

// unstored reports that the newest change of the inputs has made no revision: it was refused, has
// failed before, or waits. The running revision is then the one before the change. An upgrade to a
// new chart that waits in the rollout is no such change.
func (r *Reconciler) unstored(v *snapshot) bool {
	if v.Unread || len(v.History) == 0 || !v.History[0].Written() || !v.History[0].WasDeployed() {
		return false
	}
	known, newest := r.memory.of(v.CR.GetUID()), v.History[0]
	failed := v.Marks.Held == nil && newest.InputDigest != v.digests.Input &&
		known.failure != nil && known.failure.Target.Goal == plan.GoalSpec && known.failure.Target.Digest == v.digests.Input
	return (failed || r.unfollowed(v)) && !known.progress.neverReady(newest.Revision)
}

// available returns the requested revision, 0 if it is not kept or was never deployed.
func (v *snapshot) available(asked annotations.Rollback) int {
	if asked.Previous {
		return cmp.Or(v.Previous, release.Previous(v.Kept(), false))
	}
	for _, record := range v.Kept() {
		if record.Revision == asked.Revision && record.WasDeployed() {
			return asked.Revision
		}
	}
	return 0
}

// marksAfter returns the marks that a step stores in the record.
func (r *Reconciler) marksAfter(v *snapshot, d plan.Decision) release.Marks {
	marks := v.Marks
	request := v.Observation.Request
	switch d.Step {
	case plan.StepInstall, plan.StepUpgrade:
		marks.Held, marks.ResumedChart = nil, ""
		marks.Reconcile, marks.Force = status.Token(v.Requests.Reconcile), status.Token(v.Requests.Force)
	case plan.StepVerify:
		if !waitsForApproval(v) {
			marks.Reconcile, marks.Force = status.Token(v.Requests.Reconcile), status.Token(v.Requests.Force)
		}
	case plan.StepTest:
		marks.Test = status.Token(v.Requests.Test)
	case plan.StepRollback:
		held := release.Held{Revision: d.Revision, From: v.History[0].Revision}
		held.Spec, held.Scale = r.specAndScale(v)
		switch {
		case d.State == plan.StateFailed:
			held.ByFailure = true
		case request == nil && marks.Held != nil:
			// The hold is restored, so it keeps its origin.
			held.From, held.ByFailure = marks.Held.From, marks.Held.ByFailure
			held.Spec, held.Scale = marks.Held.Spec, marks.Held.Scale
		}
		marks.Held, marks.ResumedChart = &held, ""
	case plan.StepResume:
		if marks.Held != nil {
			marks.Held, marks.ResumedChart = nil, r.chartDigest()
		}
	}
	if request != nil && d.State == plan.StateRollbackRequested {
		// An expired request is not refused: its failure was reported already.
		marks.Rollback, marks.Refused = request.Token, d.Step == plan.StepRefuse && !request.Expired
		marks.Untrusted = marks.Refused && v.UntrustedTarget != ""
	}
	return marks
}

// request is a rollback request as this process first observed it. A later edit of
// the spec, before the rollback is carried out, takes precedence.
type request struct {
	token string
	// spec and scale are those of the custom resource at that time.
	spec  string
	scale string
	// overtaken reports that the spec had been edited after the request by then. unclear
	// reports that the order of the edit and the request is unknown.
	overtaken bool
	unclear   bool
	// previous is Snapshot.Previous at that time. A failure of the rollback itself, or the end
	// of an upgrade, must not change the target.
	previous int
}

// observeRequest observes the revision of a rollback request, and whether the spec was
// edited after the request.
func (r *Reconciler) observeRequest(v *snapshot, asked annotations.Rollback) {
	first := r.memory.request(v.CR.GetUID(), status.Token(asked.Value), func() request { return r.firstObserved(v, asked) })
	v.Previous = cmp.Or(first.previous, v.Previous)
	observed := &plan.Request{Token: first.token, Resume: asked.None, Revision: v.available(asked)}
	if observed.Revision > 0 {
		observed.Expired = first.overtaken || r.edited(v, first.spec, first.scale)
		v.unclear = first.unclear
	}
	v.Observation.Request = observed
}

// firstObserved finds out whether the spec was edited after the request. It compares
// the generation in the request or, without one, the times in managedFields. If the
// order is unknown, the rollback is carried out.
func (r *Reconciler) firstObserved(v *snapshot, asked annotations.Rollback) request {
	first := request{token: status.Token(asked.Value), previous: v.Previous}
	first.spec, first.scale = r.specAndScale(v)
	if asked.None || !r.unfollowed(v) {
		return first
	}
	e, known := customresource.EditsOf(v.CR)
	// A field that no edit owns in managedFields was scaled, now or before.
	scaled := first.scale != "" && first.scale != unscaled && !e.Scale
	switch {
	case asked.Generation > 0 && v.CR.GetGeneration() <= asked.Generation:
	case asked.Generation > 0 && !scaled:
		// Only an edit can have changed the generation since.
		first.overtaken = true
	case !known, e.AskedAt == 0, e.EditedAt == 0, e.EditedAt == e.AskedAt:
		first.unclear = true
	default:
		first.overtaken = e.EditedAt > e.AskedAt
	}
	return first
}

// unfollowed reports whether the spec was edited since the last upgrade or since the
// hold began. Only such an edit could be lost by a rollback.
func (r *Reconciler) unfollowed(v *snapshot) bool {
	if held := v.Marks.Held; held != nil {
		return r.edited(v, held.Spec, held.Scale)
	}
	return len(v.History) > 0 && (!v.History[0].Written() || v.History[0].ValuesDigest != v.digests.Values)
}

// edited reports whether the spec was edited since it had this digest and this value
// of the scaled field. A write to the scale subresource is not an edit.
func (r *Reconciler) edited(v *snapshot, spec, scale string) bool {
	specNow, now := r.specAndScale(v)
	if spec != specNow {
		return true
	}
	if scale == "" || scale == now {
		return false
	}
	e, _ := customresource.EditsOf(v.CR)
	// The scale subresource cannot remove the field.
	return e.Scale || now == unscaled
}

// unscaled is the label value for a scaled field that is not set.
const unscaled = "unset"

// waitingScale describes the scaling that waits for the end of the hold, empty for
// none.
func (r *Reconciler) waitingScale(v *snapshot) string {
	held := v.Marks.Held
	if held == nil || held.Scale == "" {
		return ""
	}
	_, now := r.specAndScale(v)
	if now == "" || now == held.Scale {
		return ""
	}
	return fmt.Sprintf("Scaling .%s from %s to %s takes effect when the hold ends", strings.Join(r.Kind.ScalePath(), "."), held.Scale, now)
}

// noteUnclear is added to the event of a rollback if the spec may have been edited
// after the request.
const noteUnclear = ". The spec was edited at about the time of the request, perhaps after it; the request takes precedence. To follow the spec, edit it again or set the annotation to \"none\""

// noteOvertaken is the note of the event of a skipped request.
func noteOvertaken(v *snapshot) string {
	return fmt.Sprintf("rollback-to=%s is skipped, because the spec was edited after the request. To roll back anyway, repeat the request with another token, such as %s@again",
		api.Truncate(v.Requests.Rollback.Value, 64), strings.TrimSpace(strings.SplitN(v.Requests.Rollback.Value, "@", 2)[0]))
}
