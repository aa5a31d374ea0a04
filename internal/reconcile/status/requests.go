package status

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/release"
)

// TokenLength is the length of a request's token in hexadecimal digits.
const TokenLength = 16

// Token returns the digest of a request's value, empty for an empty value.
func Token(value string) string {
	if value == "" {
		return ""
	}
	return values.DigestOf(value)[:TokenLength]
}

// Unanswered reports whether a request has no answer yet.
func Unanswered(value, answered string) bool { return value != "" && Token(value) != answered }

// rollback describes the hold, or returns nil.
func rollback(v *Snapshot) *api.RollbackStatus {
	held := v.Marks.Held
	if held == nil || v.Observation.Held == nil || v.Observation.Held.Expired {
		return nil
	}
	s := &api.RollbackStatus{To: int64(held.Revision), From: int64(held.From)}
	for _, record := range v.History {
		if record.Written() {
			s.Since = deployedAt(record)
			break
		}
	}
	return s
}

// held returns the reason and the message of the condition Held. The message is empty
// if the condition is not True.
func held(v *Snapshot) (reason, message string) {
	r := rollback(v)
	if r == nil {
		return "", ""
	}
	reason, cause := api.ReasonRolledBack, "as requested by the annotation rollback-to"
	if v.Marks.Held.ByFailure {
		reason, cause = api.ReasonRolledBackAfterFailure, "because the upgrade failed repeatedly"
	}
	at := ""
	if r.Since != nil {
		at = " at " + r.Since.UTC().Format(time.RFC3339)
	}
	message = fmt.Sprintf("Rolled back from revision %d to revision %d%s, %s. Held until you edit the spec or set %s to %q",
		r.From, r.To, at, cause, api.AnnotationRollbackTo, "none")
	if v.Scaling != "" {
		message += ". " + v.Scaling
	}
	return reason, message
}

// pausing returns the message of the condition Paused, empty if it is not True.
func pausing(d plan.Decision) string {
	switch {
	case d.State != plan.StatePaused:
		return ""
	case d.Pending.Step == plan.StepWait:
		return fmt.Sprintf("Paused by the annotation %s; no changes pending", api.AnnotationPause)
	default:
		return fmt.Sprintf("Paused by the annotation %s; pending step: %s. Remove the annotation to resume", api.AnnotationPause, d.Pending.Step)
	}
}

// refusalReason returns the reason of the condition RollbackRefused.
func refusalReason(v *Snapshot) string {
	if v.Requests.Rollback != nil && v.Requests.Rollback.Malformed() {
		return api.ReasonInvalidValue
	}
	if v.Marks.Refused && v.Marks.Untrusted {
		return api.ReasonRecordUntrusted
	}
	return api.ReasonNoSuchRevision
}

// answered returns the values of the answered requests that are still in annotations,
// or nil. The records store the requests that were carried out or
// refused. A failed attempt may have stored nothing, but its target identifies the
// request.
func answered(v *Snapshot, d plan.Decision) *api.AnsweredStatus {
	o := v.Observation
	failed := v.failing() != nil
	// With an invalid spec nothing is retried, and the deployed revision was verified
	// before.
	verified := failed || d.State == plan.StateInvalid ||
		v.RepairFailure.of(plan.TargetOf(plan.StepVerify, o)) != nil
	// The end of a hold is answered when it is stored, before the next upgrade.
	resuming := o.Running != nil && o.Running.Step == plan.StepResume
	var a api.AnsweredStatus
	for _, request := range []struct {
		value, mark string
		tried       bool
		to          *string
	}{
		{rollbackValue(v, resuming), v.Marks.Rollback, failed && o.Request != nil, &a.RollbackTo},
		{v.Requests.Reconcile, v.Marks.Reconcile, verified, &a.ReconcileRequestedAt},
		{v.Requests.Force, v.Marks.Force, verified, &a.Force},
		{v.Requests.Test, v.Marks.Test, false, &a.Test},
	} {
		if request.value != "" && (request.tried || !Unanswered(request.value, request.mark)) {
			*request.to = request.value
		}
	}
	if a == (api.AnsweredStatus{}) {
		return nil
	}
	return &a
}

// rollbackValue returns the value of the annotation rollback-to, empty if it has no
// answer yet or is malformed.
func rollbackValue(v *Snapshot, resuming bool) string {
	if v.Requests.Rollback == nil || v.Requests.Rollback.Malformed() || v.Requests.Rollback.None && resuming {
		return ""
	}
	return v.Requests.Rollback.Value
}

// Refused returns why the rollback request is refused, empty if it is not.
func Refused(v *Snapshot) string {
	asked := v.Requests.Rollback
	switch {
	case asked == nil:
		return ""
	case asked.Malformed():
		return fmt.Sprintf(`rollback-to is %q: expected a revision, "previous" or "none", optionally with "@" and any text to repeat a request`, api.Truncate(asked.Value, 64))
	case len(v.History) == 0 && v.Observation.Request != nil && !asked.None && v.failing() != nil:
		// No record stores the answer.
		return "No revision is stored"
	case !v.Marks.Refused || v.Marks.Rollback != Token(asked.Value):
		return ""
	case v.Marks.Untrusted && asked.Previous:
		return untrustedTarget("The previous revision", v)
	case v.Marks.Untrusted:
		return untrustedTarget(fmt.Sprintf("Revision %d", asked.Revision), v)
	case asked.Previous:
		return "No earlier revision was ever deployed and ready"
	case v.Exceeds(asked.Revision):
		return fmt.Sprintf("Revision %d exceeds the kind's maxHistory, although its record exists", asked.Revision)
	default:
		return fmt.Sprintf("Revision %d is not stored, or was never deployed", asked.Revision)
	}
}

// Exceeds reports whether the record of a revision exceeds the kind's maxHistory. A user could
// have restored such a record from a copy, so nothing is rolled back to it.
func (v *Snapshot) Exceeds(revision int) bool {
	return slices.ContainsFunc(v.Excess, func(r release.Record) bool { return r.Revision == revision })
}

// Kept returns the history without the records that exceed the kind's maxHistory.
func (v *Snapshot) Kept() []release.Record {
	if len(v.Excess) == 0 {
		return v.History
	}
	return slices.DeleteFunc(slices.Clone(v.History), func(r release.Record) bool { return v.Exceeds(r.Revision) })
}

// untrustedTarget returns why the rollback to a revision is refused.
func untrustedTarget(revision string, v *Snapshot) string {
	text := revision + " has a release record that is not authenticated. A rollback to it requires that the chart renders each of its objects and that none is cluster-scoped"
	if v.UntrustedTarget != "" {
		text += ": " + v.UntrustedTarget
	}
	return text
}

// refusal returns the message of the condition RollbackRefused, with the available
// revisions.
func refusal(v *Snapshot) string {
	why := Refused(v)
	if why == "" {
		return ""
	}
	var can []string
	for _, record := range v.Kept() {
		if record.WasDeployed() {
			can = append(can, strconv.Itoa(record.Revision))
		}
	}
	slices.Reverse(can)
	if len(can) == 0 {
		return why + "; no revision is available"
	}
	return why + "; nothing was changed. Available revisions: " + strings.Join(can, ", ")
}

// maxRules is the maximum length of the message with missing rules, in bytes.
const maxRules = 32 << 10
