package plan

import "time"

// Bounds of the time between attempts.
const (
	minBackoff = time.Second
	maxBackoff = 5 * time.Minute
	// approvalBackoff is the time between attempts of an action that waits for an approval.
	// Usually the approval, or a change of an object, causes the next attempt.
	approvalBackoff = time.Hour
	// staleBackoff bounds the time between attempts that find another state than the
	// operator knows, because no event may report that both are the same again.
	staleBackoff = 30 * time.Second
)

// retry replaces a step by a wait while the backoff of the last failure with the same
// target lasts, or while the custom resource has begun too many actions.
func retry(o Observation, d Decision) Decision {
	failure := o.Failure
	if Repairs(d.Step) {
		failure = o.RepairFailure
	}
	limited := Limited(d.Step, o)
	if failure != nil && failure.Target == TargetOf(d.Step, o) {
		if left := failure.Next().Sub(o.Now); left > 0 {
			d.Step, d.After = StepWait, left
		}
	}
	if left := o.Earliest.Sub(o.Now); limited && left > d.After {
		d.Throttled = d.Step != StepWait
		d.Step, d.After = StepWait, left
	}
	return d
}

// Limited reports whether authors of custom resources can repeat a step by requests
// and edits. The number of such steps is limited. Drift correction, uninstalls,
// periods and corrections of records are not limited.
func Limited(step Step, o Observation) bool {
	switch step {
	case StepInstall, StepUpgrade, StepAdopt, StepRollback, StepResume, StepRefuse, StepTest:
		return true
	case StepVerify:
		return o.VerifyRequested && !o.Unverified
	default:
		return false
	}
}

// TargetKey identifies the target of an action. A failure delays later actions with
// an equal key. A request to retry changes the key.
type TargetKey struct {
	// Goal is the kind of target.
	Goal Goal
	// Digest is that of the inputs, if the goal is the spec, or the new namespace of a
	// release that moves.
	Digest string
	// Revision, Request and Expired are those of a rollback or a hold.
	Revision int
	Request  string
	Expired  bool
	// RetryToken is Observation.RetryToken.
	RetryToken string
}

// Goal is the kind of a TargetKey.
type Goal string

// The goals.
const (
	GoalSpec      Goal = "spec"
	GoalRevision  Goal = "revision"
	GoalGone      Goal = "gone"
	GoalCorrected Goal = "corrected"
	GoalTested    Goal = "tested"
	GoalRestored  Goal = "restored"
	GoalRecorded  Goal = "recorded"
	GoalSigned    Goal = "signed"
)

// Target returns the target of the release: the spec, an earlier revision, or its
// removal.
func Target(o Observation) TargetKey {
	switch {
	case o.Deleting:
		return TargetKey{Goal: GoalGone, RetryToken: o.RetryToken}
	case o.Request != nil && o.stored():
		return TargetKey{Goal: GoalRevision, Revision: o.Request.Revision, Request: o.Request.Token, Expired: o.Request.Expired, RetryToken: o.RetryToken}
	case o.Holding() && !o.Held.ByFailure:
		return TargetKey{Goal: GoalRevision, Revision: o.Held.Revision, Request: o.Held.Token, RetryToken: o.RetryToken}
	case isMoving(o):
		return moveTarget(o)
	default:
		// A rollback by failure has the same target as the upgrade that failed.
		return TargetKey{Goal: GoalSpec, Digest: o.Desired, RetryToken: o.RetryToken}
	}
}

// moveTarget returns the target of the uninstall before a move.
func moveTarget(o Observation) TargetKey {
	return TargetKey{Goal: GoalGone, Digest: o.MoveTo, RetryToken: o.RetryToken}
}

// goals are the goals of the steps that do not serve the Target of the release.
var goals = map[Step]Goal{
	StepUninstall: GoalGone, StepRepair: GoalCorrected, StepVerify: GoalCorrected,
	StepTest: GoalTested, StepRestore: GoalRestored, StepRecord: GoalRecorded, StepSign: GoalSigned,
}

// TargetOf returns the target of a step.
func TargetOf(step Step, o Observation) TargetKey {
	if step == StepUninstall && isMoving(o) {
		return moveTarget(o)
	}
	if goal, ok := goals[step]; ok {
		return TargetKey{Goal: goal, RetryToken: o.RetryToken}
	}
	return Target(o)
}

// Reached reports whether the release has reached its Target. Then a failure to reach
// it is obsolete: a write may have succeeded although its response was lost.
func Reached(o Observation) bool {
	if o.Deleting || o.Overdue || o.Running != nil || o.Inconsistent || o.Request != nil || isMoving(o) || o.Held != nil && o.Held.Expired {
		return false
	}
	return o.runs() && (o.Holding() || o.Newest.Digest == o.Desired)
}

// Repairs reports whether a step applies the deployed revision again.
func Repairs(step Step) bool { return step == StepRepair || step == StepVerify }

// Changes reports whether a step changes the deployed revision or its records.
func Changes(step Step) bool {
	switch step {
	case StepInstall, StepUpgrade, StepRollback, StepUninstall, StepOrphan, StepAdopt, StepUnlock:
		return true
	default:
		return false
	}
}

// Next returns when the next attempt may begin.
func (f *Failure) Next() time.Time {
	switch backoff := Backoff(f.Attempts); {
	case f.Waits:
		return f.At.Add(approvalBackoff)
	case f.Stale:
		return f.At.Add(min(backoff, staleBackoff))
	default:
		return f.At.Add(backoff)
	}
}

// Backoff returns the time until the next attempt after a number of failed attempts. It doubles
// from minBackoff to maxBackoff.
func Backoff(attempts int) time.Duration {
	wait := minBackoff
	for range attempts - 1 {
		if wait *= 2; wait >= maxBackoff {
			return maxBackoff
		}
	}
	return wait
}
