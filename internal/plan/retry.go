package plan

import "time"

// Bounds of the time between tries.
const (
	minBackoff = time.Second
	maxBackoff = 5 * time.Minute
)

// retry turns a step into a wait while the last failure with the same target is
// too recent, or while the custom resource has begun too many actions.
func retry(o Observation, d Decision) Decision {
	failure := o.Failure
	if Repairs(d.Step) {
		failure = o.RepairFailure
	}
	limited := Limited(d.Step, o)
	if failure != nil && failure.Target == TargetOf(d.Step, o) {
		if left := failure.At.Add(backoff(failure.Attempts)).Sub(o.Now); left > 0 {
			d.Step, d.After = StepWait, left
		}
	}
	if left := o.Earliest.Sub(o.Now); limited && left > d.After {
		d.Throttled = d.Step != StepWait
		d.Step, d.After = StepWait, left
	}
	return d
}

// Limited reports whether authors of custom resources can cause a step again and
// again by requests and edits, so that their number is limited. Drift correction,
// uninstalls, periods and repairs of records are not limited.
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

// TargetKey identifies what an action is to bring about. A failure counts against
// later tries with an equal key; a request for another try makes another key.
type TargetKey struct {
	// Goal is GoalSpec, GoalRevision, or what else a step is for.
	Goal Goal
	// Digest is that of the inputs, where the goal is the spec.
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

// Target returns what the release of a custom resource is to be brought to: what
// the spec asks for, an earlier revision, or its removal.
func Target(o Observation) TargetKey {
	switch {
	case o.Deleting:
		return TargetKey{Goal: GoalGone, RetryToken: o.RetryToken}
	case o.Request != nil && o.stored():
		return TargetKey{Goal: GoalRevision, Revision: o.Request.Revision, Request: o.Request.Token, Expired: o.Request.Expired, RetryToken: o.RetryToken}
	case o.Holding() && !o.Held.ByFailure:
		return TargetKey{Goal: GoalRevision, Revision: o.Held.Revision, Request: o.Held.Token, RetryToken: o.RetryToken}
	default:
		// A rollback by failure has the same target as the upgrade that failed.
		return TargetKey{Goal: GoalSpec, Digest: o.Desired, RetryToken: o.RetryToken}
	}
}

// goals are those of the steps that do not bring the release to its Target.
var goals = map[Step]Goal{
	StepUninstall: GoalGone, StepRepair: GoalCorrected, StepVerify: GoalCorrected,
	StepTest: GoalTested, StepRestore: GoalRestored, StepRecord: GoalRecorded, StepSign: GoalSigned,
}

// TargetOf returns what one step is to bring about.
func TargetOf(step Step, o Observation) TargetKey {
	if goal, ok := goals[step]; ok {
		return TargetKey{Goal: goal, RetryToken: o.RetryToken}
	}
	return Target(o)
}

// Reached reports whether the release is what Target names, so that a failure to
// bring it there is history: the answer to a write may have been lost, and not
// the write.
func Reached(o Observation) bool {
	if o.Deleting || o.Overdue || o.Running != nil || o.Inconsistent || o.Request != nil || o.Held != nil && o.Held.Expired {
		return false
	}
	return o.runs() && (o.Holding() || o.Newest.Digest == o.Desired)
}

// Repairs reports whether a step restores what runs and does not change it.
func Repairs(step Step) bool { return step == StepRepair || step == StepVerify }

// Changes reports whether a step changes what runs, or what is to run.
func Changes(step Step) bool {
	switch step {
	case StepInstall, StepUpgrade, StepRollback, StepUninstall, StepOrphan, StepAdopt, StepUnlock:
		return true
	default:
		return false
	}
}

// backoff doubles from minBackoff to maxBackoff.
func backoff(attempts int) time.Duration {
	wait := minBackoff
	for range attempts - 1 {
		if wait *= 2; wait >= maxBackoff {
			return maxBackoff
		}
	}
	return wait
}
