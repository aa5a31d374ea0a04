package reconcile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/api/annotations"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/release"
)

// tokenLength is the number of hex digits by which a request is known.
const tokenLength = 16

// token is the digest of a request's value, empty for none.
func token(value string) string {
	if value == "" {
		return ""
	}
	return values.DigestOf(value)[:tokenLength]
}

// observeRequests finds out what people ask for by annotations, and what of it
// was answered.
func (r *Reconciler) observeRequests(v *view) {
	o := &v.observation
	asks := v.asks
	o.Paused = asks.Pause != annotations.PauseNot
	o.PausedDeletion = asks.Pause == annotations.PauseIncludingDeletion
	o.Orphan = asks.Orphan || o.Deleting && r.orphaned(v.cr)
	o.Nudge = token(asks.Reconcile) + token(asks.Force) + token(asks.Switches())
	if !o.Adoptable {
		v.marks = release.MarksOf(v.history)
	}
	o.VerifyRequested = unanswered(asks.Reconcile, v.marks.Reconcile) || v.forced()
	o.TestRequested = unanswered(asks.Test, v.marks.Test)
	if held := v.marks.Held; held != nil {
		o.Held = &plan.Held{Revision: held.Revision, Token: v.marks.Rollback, Over: r.edited(v, held.Spec, held.Scale), ByFailure: held.ByFailure}
		v.scaling = r.waitingScale(v)
	}
	o.Retries = r.Kind.FailureRetries()
	o.LastGood = r.lastGood(v)
	o.Untidy = untidy(v.history)
	if asked := asks.Rollback; asked != nil && !asked.Malformed() && unanswered(asked.Value, v.marks.Rollback) {
		r.observeRequest(v, *asked)
	} else {
		r.memory.unrequest(v.cr.GetUID())
	}
}

func unanswered(value, answered string) bool { return value != "" && token(value) != answered }

// forced tells whether a person has asked for force, and nothing was forced for
// that request yet.
func (v *view) forced() bool { return unanswered(v.asks.Force, v.marks.Force) }

// remove takes a field out of nested objects, and with it those that hold
// nothing else: whoever sets the field may have made them.
func remove(from map[string]any, path []string) {
	if len(path) == 1 {
		delete(from, path[0])
		return
	}
	if inner, ok := from[path[0]].(map[string]any); ok {
		remove(inner, path[1:])
		if len(inner) == 0 {
			delete(from, path[0])
		}
	}
}

// lastGood is the newest revision before the newest that was good and can be
// rolled back to.
func (r *Reconciler) lastGood(v *view) int {
	for i, record := range v.history {
		if i > 0 && record.WasGood() && r.unrepeatable.of(record, v.digests.Input) == "" {
			return record.Revision
		}
	}
	return 0
}

// untidy tells whether the records contradict each other: more than one revision
// is deployed, or one of ours is pending below a newer one, which somebody made
// while it was under way.
func untidy(history []release.Record) bool {
	deployed := 0
	for i, record := range history {
		if record.Status == api.StatusDeployed {
			deployed++
		}
		if i > 0 && record.Written() && api.Pending(record.Status) {
			return true
		}
	}
	return deployed > 1
}

// available returns the revision that a request asks for, 0 where there is
// none: what never was deployed is not brought back.
func available(v *view, asked annotations.Rollback) int {
	var before int
	switch {
	case len(v.history) == 0 || asked.None:
		return 0
	case v.marks.Held != nil:
		before = v.marks.Held.Revision
	default:
		before = v.history[0].Revision
	}
	for _, record := range v.history {
		if !record.WasDeployed() {
			continue
		}
		if asked.Previous && record.Revision < before && record.WasGood() || record.Revision == asked.Revision {
			return record.Revision
		}
	}
	return 0
}

// refused says why a rollback request is not met, empty where none was refused.
func refused(v *view) string {
	asked := v.asks.Rollback
	switch {
	case asked == nil:
		return ""
	case asked.Malformed():
		return fmt.Sprintf(`rollback-to is %q: expected a revision, "previous" or "none", with "@" and any text after it to ask again`, cutTo(asked.Value, 64))
	case !v.marks.Refused || v.marks.Rollback != token(asked.Value):
		return ""
	case v.marks.Untrusted && asked.Previous:
		return untrustedTarget("The previous revision", v)
	case v.marks.Untrusted:
		return untrustedTarget(fmt.Sprintf("Revision %d", asked.Revision), v)
	case asked.Previous:
		return "No revision before the one that runs was ever deployed and ready"
	default:
		return fmt.Sprintf("Revision %d is not stored, or was never deployed", asked.Revision)
	}
}

// untrustedTarget says why a revision is not rolled back to.
func untrustedTarget(revision string, v *view) string {
	text := revision + " has a release record that is not authenticated, so that it is rolled back to only if the chart renders each of its objects and none is cluster-scoped"
	if v.untrustedTarget != "" {
		text += ": " + v.untrustedTarget
	}
	return text
}

// refusal is refused with what could be had.
func refusal(v *view) string {
	why := refused(v)
	if why == "" {
		return ""
	}
	var can []string
	for _, record := range v.history {
		if record.WasDeployed() {
			can = append(can, strconv.Itoa(record.Revision))
		}
	}
	slices.Reverse(can)
	if len(can) == 0 {
		return why + "; there is no revision to go back to"
	}
	return why + "; nothing was changed. To be had are: " + strings.Join(can, ", ")
}

// marksAfter returns the marks that a step leaves on the record.
func (r *Reconciler) marksAfter(v *view, d plan.Decision) release.Marks {
	marks := v.marks
	request := v.observation.Request
	switch d.Step {
	case plan.StepInstall, plan.StepUpgrade:
		marks.Held, marks.ResumedChart = nil, ""
		marks.Reconcile, marks.Force = token(v.asks.Reconcile), token(v.asks.Force)
	case plan.StepVerify:
		marks.Reconcile, marks.Force = token(v.asks.Reconcile), token(v.asks.Force)
	case plan.StepTest:
		marks.Test = token(v.asks.Test)
	case plan.StepRollback:
		held := release.Held{Revision: d.Revision, From: v.history[0].Revision, Spec: r.specDigest(v), Scale: r.scale(v)}
		switch {
		case d.State == plan.StateFailed:
			held.ByFailure = true
		case request == nil && marks.Held != nil:
			// It goes back to where it was.
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
		// One that ends by an edit was told of when it failed.
		marks.Rollback, marks.Refused = request.Token, d.Step == plan.StepRefuse && !request.Over
		marks.Untrusted = marks.Refused && v.untrustedTarget != ""
	}
	return marks
}
