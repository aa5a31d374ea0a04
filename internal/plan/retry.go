package plan

import (
	"strconv"
	"time"
)

// Bounds of the time between tries.
const (
	minBackoff = time.Second
	maxBackoff = 5 * time.Minute
)

// retry turns a step into a wait while the last failure with the same aim is
// too recent, or while the custom resource has begun too many actions.
func retry(o Observation, d Decision) Decision {
	failure := o.Failure
	if Repairs(d.Step) {
		failure = o.RepairFailure
	}
	limited := Limited(d.Step, o)
	if failure != nil && failure.Aim == AimOf(d.Step, o) {
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
// uninstalls, periods and repairs of records are not.
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

// Aim is what a custom resource's release is to be brought to: a digest of what
// it is rendered from, an earlier revision, or that it is gone. A request for
// another try makes it another aim.
func Aim(o Observation) string {
	switch {
	case o.Deleting:
		return gone(o)
	case o.Request != nil && o.stored():
		aim := rollbackAim(o.Request.Revision, o.Request.Token) + o.Nudge
		if o.Request.Over {
			aim += " is over"
		}
		return aim
	case o.holding() && !o.Held.ByFailure:
		return rollbackAim(o.Held.Revision, o.Held.Token) + o.Nudge
	default:
		// A release goes back by failure for the sake of the same aim.
		return o.Desired + o.Nudge
	}
}

func rollbackAim(revision int, token string) string {
	return "revision " + strconv.Itoa(revision) + " " + token
}

// AimOf is what one step is to bring about, by which its failure is known.
func AimOf(step Step, o Observation) string {
	switch {
	case Repairs(step):
		return "repaired" + o.Nudge
	case step == StepUninstall:
		return gone(o)
	case step == StepTest:
		return "tested" + o.Nudge
	case step == StepRestore:
		return "restored" + o.Nudge
	case step == StepRecord:
		return "recorded" + o.Nudge
	case step == StepSign:
		return "signed" + o.Nudge
	default:
		return Aim(o)
	}
}

func gone(o Observation) string { return "gone" + o.Nudge }

// Reached tells whether what Aim names is there, so that a failure to bring it
// about is history: the answer to a write may have been lost, and not the write.
func Reached(o Observation) bool {
	if o.Deleting || o.Overdue || o.Running != nil || o.Untidy || o.Request != nil || o.Held != nil && o.Held.Over {
		return false
	}
	return o.runs() && (o.holding() || o.Newest.Digest == o.Desired)
}

// Repairs tells the steps that bring back what runs from those that change it.
func Repairs(step Step) bool { return step == StepRepair || step == StepVerify }

// Changes tells the steps that change what runs, or what is to.
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
