package plan

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/chartwright/chartwright/internal/api"
)

var statuses = []string{
	api.StatusDeployed, api.StatusSuperseded, api.StatusFailed, api.StatusUninstalling, api.StatusUninstalled,
	api.StatusPendingInstall, api.StatusPendingUpgrade, api.StatusPendingRollback, "unknown", "",
}

var digests = []string{desired, "another", ""}

var steps = []Step{
	StepInstall, StepUpgrade, StepRollback, StepUninstall, StepOrphan, StepAdopt, StepUnlock,
	StepRestore, StepTidy, StepRepair, StepVerify, StepTest, StepResume, StepRefuse, StepDiagnose, StepRecord, StepSign,
}

func past(t *rapid.T, label string) time.Time {
	return now.Add(-time.Duration(rapid.IntRange(0, 1200).Draw(t, label)) * time.Second)
}

func oneIn(t *rapid.T, n int, label string) bool { return rapid.IntRange(1, n).Draw(t, label) == 1 }

// observation draws any observation, including impossible ones.
func observation(t *rapid.T) Observation {
	o := Observation{
		Now:       now,
		Deleting:  rapid.Bool().Draw(t, "deleting"),
		Finalizer: rapid.Bool().Draw(t, "finalizer"),
		Former:    oneIn(t, 4, "former finalizer"),
		Paused:    oneIn(t, 4, "paused"),
		Orphan:    oneIn(t, 4, "orphan"),
		Conflict:  oneIn(t, 5, "conflict"),
		Adoptable: oneIn(t, 5, "adoptable"),
		Desired:   desired,
		Period:    rapid.SampledFrom([]time.Duration{0, time.Second, time.Hour}).Draw(t, "period"),
		Applied:   past(t, "applied"),

		Overdue:         oneIn(t, 5, "overdue"),
		NeedsDiagnosis:  oneIn(t, 5, "needs diagnosis"),
		Inconsistent:    oneIn(t, 5, "untidy"),
		Orphans:         rapid.Bool().Draw(t, "orphans"),
		Drifted:         rapid.Bool().Draw(t, "drifted"),
		Unrecorded:      oneIn(t, 5, "unrecorded"),
		Unsigned:        oneIn(t, 5, "unsigned"),
		Postponed:       oneIn(t, 6, "postponed"),
		Unverified:      rapid.Bool().Draw(t, "unverified"),
		VerifyRequested: oneIn(t, 4, "verify"),
		TestRequested:   oneIn(t, 4, "test"),
		RetryToken:      rapid.SampledFrom([]string{"", "again"}).Draw(t, "retry token"),
		Retries:         rapid.IntRange(0, 3).Draw(t, "retries"),
		LastGood:        rapid.IntRange(0, 2).Draw(t, "last good"),
		Abort:           rapid.IntRange(0, 3).Draw(t, "abort"),
		AbortUninstall:  oneIn(t, 5, "abort uninstall"),
	}
	o.PausedDeletion = o.Paused && rapid.Bool().Draw(t, "paused deletion")
	if oneIn(t, 5, "invalid") {
		isInvalid(&o)
		o.Invalid.Waits = rapid.Bool().Draw(t, "invalid until the dependency is ready")
	}
	if oneIn(t, 4, "depends") {
		o.Dependency = &Obstacle{Message: "Database db is not ready"}
	}
	if oneIn(t, 4, "in use") {
		o.Dependents = &Obstacle{Message: "App shop depends on it"}
	}
	if oneIn(t, 5, "running") {
		o.Running = &Running{Step: rapid.SampledFrom(steps).Draw(t, "step"), Since: past(t, "since")}
	}
	if oneIn(t, 4, "requested") {
		o.Request = &Request{Token: "asked"}
		if o.Request.Resume = oneIn(t, 3, "resume"); !o.Request.Resume {
			o.Request.Revision = rapid.IntRange(0, 3).Draw(t, "requested revision")
			o.Request.Expired = oneIn(t, 3, "expired request")
		}
	}
	if !o.Adoptable && oneIn(t, 3, "is held") {
		o.Held = &Held{Revision: rapid.IntRange(1, 3).Draw(t, "held"), Token: "held", Expired: rapid.Bool().Draw(t, "expired hold"), ByFailure: rapid.Bool().Draw(t, "by failure")}
	}
	if rapid.IntRange(0, 4).Draw(t, "newest") > 0 {
		o.Newest = &Revision{
			Number:      rapid.IntRange(1, 5).Draw(t, "number"),
			Status:      rapid.SampledFrom(statuses).Draw(t, "status"),
			Owned:       !oneIn(t, 4, "not owned"),
			WrittenByUs: rapid.Bool().Draw(t, "written by us"),
			Began:       past(t, "began"),
			Timeout:     5 * time.Minute,
		}
		o.Newest.Untrusted = oneIn(t, 5, "untrusted")
		o.Newest.Stripped = !o.Newest.WrittenByUs && rapid.Bool().Draw(t, "stripped")
		if o.Newest.WrittenByUs {
			o.Newest.Digest = rapid.SampledFrom(digests).Draw(t, "digest")
		}
	}
	// Only a deployed revision waits for its upgrade to a new chart.
	o.Postponed = o.Postponed && o.runs() && o.Newest.Digest != o.Desired
	if oneIn(t, 3, "throttled") {
		o.Earliest = now.Add(time.Duration(rapid.IntRange(-10, 60).Draw(t, "earliest")) * time.Second)
	}
	attempts := rapid.IntRange(1, 60)
	if rapid.Bool().Draw(t, "failed") {
		targets := []TargetKey{Target(o), TargetOf(StepUninstall, o), TargetOf(StepTest, o), TargetOf(StepRestore, o), {Goal: GoalSpec, Digest: "another"}}
		o.Failure = &Failure{Target: rapid.SampledFrom(targets).Draw(t, "target"), Attempts: attempts.Draw(t, "attempts"), At: past(t, "at")}
	}
	if rapid.Bool().Draw(t, "repair failed") {
		o.RepairFailure = &Failure{Target: TargetOf(StepRepair, o), Attempts: attempts.Draw(t, "repairs"), At: past(t, "repaired")}
	}
	o.Inherited = o.Adoptable && o.Newest != nil && rapid.Bool().Draw(t, "inherited")
	return o
}

// isAction reports whether a step runs in the pool and may fail.
func isAction(step Step) bool { return slices.Contains(steps, step) }

// rule is a property of all decisions.
type rule struct {
	name   string
	broken func(o Observation, d Decision) bool
}

func is[T comparable](value T, oneOf ...T) bool { return slices.Contains(oneOf, value) }

var rules = []rule{
	{"one action at a time", func(o Observation, d Decision) bool { return o.Running != nil && d.Step != StepWait }},
	{"a deletion allows no other steps", func(o Observation, d Decision) bool {
		return o.Deleting && !is(d.Step, StepWait, StepUninstall, StepOrphan, StepRemoveFinalizer)
	}},
	{"a pause allows only the steps of a deletion", func(o Observation, d Decision) bool {
		return o.Paused && d.Step != StepWait && !o.Deleting
	}},
	{"a pause that includes deletions allows no step", func(o Observation, d Decision) bool {
		return o.PausedDeletion && d.Step != StepWait
	}},
	{"only a pause has a pending step", func(_ Observation, d Decision) bool {
		return (d.State == StatePaused) != (d.Pending != Pending{})
	}},
	{"the finalizer is removed only during a deletion", func(o Observation, d Decision) bool {
		return !o.Deleting && d.Step == StepRemoveFinalizer
	}},
	{"the finalizer is removed after the release and its objects", func(o Observation, d Decision) bool {
		return d.Step == StepRemoveFinalizer && (o.Orphans || o.Newest != nil && o.Newest.Owned)
	}},
	{"the finalizer is added before an install", func(o Observation, d Decision) bool {
		return !o.Finalizer && is(d.Step, StepInstall, StepUpgrade, StepRollback, StepAdopt)
	}},
	{"an uninstall needs a deletion or an unfinished uninstall", func(o Observation, d Decision) bool {
		return !o.Deleting && d.Step == StepUninstall && o.Newest.Status != api.StatusUninstalling
	}},
	{"an orphaned release is not uninstalled", func(o Observation, d Decision) bool {
		return o.Deleting && d.Step == StepUninstall && o.Orphan
	}},
	{"a release is orphaned only on request", func(o Observation, d Decision) bool {
		return d.Step == StepOrphan && (!o.Orphan || !o.Deleting)
	}},
	{"a conflict allows no action", func(o Observation, d Decision) bool {
		return o.Conflict && isAction(d.Step) && !o.Deleting
	}},
	{"nothing is rendered from an invalid spec", func(o Observation, d Decision) bool {
		return o.Invalid != nil && is(d.Step, StepInstall, StepUpgrade, StepAdopt)
	}},
	{"a deployed revision with an equal digest is neither upgraded nor installed", func(o Observation, d Decision) bool {
		n := o.Newest
		return n != nil && n.Status == api.StatusDeployed && n.Digest == desired && !n.Untrusted && is(d.Step, StepInstall, StepUpgrade)
	}},
	{"nothing is applied from a record that is not authenticated", func(o Observation, d Decision) bool {
		return o.Newest != nil && o.Newest.Untrusted && is(d.Step, StepRepair, StepVerify, StepTest, StepSign, StepRecord)
	}},
	{"a record is signed only if the operator wrote it last", func(o Observation, d Decision) bool {
		return d.Step == StepSign && (!o.Newest.WrittenByUs || !o.Newest.Owned || o.Newest.Status != api.StatusDeployed)
	}},
	{"a deployed release is not installed again", func(o Observation, d Decision) bool {
		n := o.Newest
		return n != nil && n.Owned && n.Status == api.StatusDeployed && d.Step == StepInstall
	}},
	{"a held release is neither upgraded nor installed over", func(o Observation, d Decision) bool {
		return o.Held != nil && !o.Held.Expired && o.stored() && is(d.Step, StepInstall, StepUpgrade)
	}},
	{"only an edit or a request ends a hold", func(o Observation, d Decision) bool {
		asked := o.Request != nil && o.Request.Resume
		edited := o.Held != nil && o.Held.Expired
		return d.Step == StepResume && !asked && !edited
	}},
	{"a rollback restores the requested, the held or the last good revision", func(o Observation, d Decision) bool {
		if d.Step != StepRollback {
			return false
		}
		asked := o.Request != nil && d.Revision == o.Request.Revision
		held := o.Request == nil && o.Held != nil && !o.Held.Expired && d.Revision == o.Held.Revision
		tried := o.Overdue || o.Failure != nil && o.Failure.Attempts >= o.Retries
		fails := o.Request == nil && o.Retries > 0 && tried && d.Revision == o.LastGood
		return d.Revision == 0 || api.Uninstalled(o.Newest.Status) || !asked && !held && !fails
	}},
	{"only requests that cannot be carried out are refused", func(o Observation, d Decision) bool {
		return d.Step == StepRefuse && (o.Request == nil || o.Request.Resume || o.Request.Revision > 0 && !o.Request.Expired)
	}},
	{"a verification needs a deployed revision and a cause", func(o Observation, d Decision) bool {
		return d.Step == StepVerify && (o.Newest.Status != api.StatusDeployed || o.Period == 0 && !o.Unverified && !o.VerifyRequested)
	}},
	{"a test needs a deployed revision and a request", func(o Observation, d Decision) bool {
		return d.Step == StepTest && (o.Newest.Status != api.StatusDeployed || !o.TestRequested)
	}},
	{"a repair needs a deployed revision and drift", func(o Observation, d Decision) bool {
		return d.Step == StepRepair && (o.Newest.Status != api.StatusDeployed || !o.Drifted)
	}},
	{"only an adoptable release is adopted", func(o Observation, d Decision) bool { return d.Step == StepAdopt && !o.Adoptable }},
	{"only a stripped record is restored", func(o Observation, d Decision) bool {
		return d.Step == StepRestore && (o.Newest.WrittenByUs || !o.Newest.Stripped || !o.Newest.Owned || o.Deleting)
	}},
	{"a stripped record is restored before other actions", func(o Observation, d Decision) bool {
		return o.stored() && o.Newest.Stripped && !o.Deleting && is(d.Step, StepInstall, StepUpgrade, StepRollback, StepUnlock, StepTidy)
	}},
	{"only a pending revision is unlocked", func(o Observation, d Decision) bool {
		return d.Step == StepUnlock && !api.Pending(o.Newest.Status)
	}},
	{"only inconsistent records of an owned release are tidied", func(o Observation, d Decision) bool {
		return d.Step == StepTidy && (!o.Inconsistent || !o.Newest.Owned || o.Deleting)
	}},
	{"inconsistent records are tidied before other actions", func(o Observation, d Decision) bool {
		return o.Inconsistent && o.stored() && !o.Deleting && isAction(d.Step) && !is(d.Step, StepRestore, StepUnlock, StepTidy)
	}},
	{"drift is corrected during the backoff of a request", func(o Observation, d Decision) bool {
		return d.State == StateRollbackRequested && d.Step == StepWait && o.runs() && o.Drifted && o.RepairFailure == nil
	}},
	{"steps that authors of custom resources can cause are limited", func(o Observation, d Decision) bool {
		// A rollback after failures is not limited.
		rescue := d.State == StateFailed && d.Step == StepRollback
		return o.Earliest.After(o.Now) && Limited(d.Step, o) && !rescue
	}},
	{"drift is corrected while actions are limited", func(o Observation, d Decision) bool {
		return d.Throttled && o.runs() && o.Drifted && o.RepairFailure == nil
	}},
	{"a limited step waits until Earliest", func(o Observation, d Decision) bool {
		return d.Throttled && (d.Step != StepWait || d.After > o.Earliest.Sub(o.Now) || d.After <= 0)
	}},
	{"nothing follows the spec before its dependencies are ready", func(o Observation, d Decision) bool {
		automatic := d.State == StateMoving && d.Step == StepUninstall
		return o.Dependency != nil && !o.Deleting && (is(d.Step, StepInstall, StepUpgrade, StepAdopt) || automatic)
	}},
	{"a dependency delays no rollback, correction, record or deletion", func(o Observation, d Decision) bool {
		free := o
		free.Dependency = nil
		next := Next(free)
		follows := next.State == StateMoving || is(next.Step, StepWait, StepInstall, StepUpgrade, StepAdopt)
		return o.Running == nil && !follows && (d.Step != next.Step || d.Revision != next.Revision)
	}},
	{"nothing is uninstalled before its dependents", func(o Observation, d Decision) bool {
		begun := o.Newest != nil && o.Newest.Status == api.StatusUninstalling
		return o.Dependents != nil && o.Deleting && !begun && d.Step == StepUninstall
	}},
	{"dependents delay deletions only", func(o Observation, d Decision) bool {
		free := o
		free.Dependents = nil
		return o.Dependents != nil && d != Next(free) && d.State != StateInUse
	}},
	{"a release in sync needs no step", func(_ Observation, d Decision) bool {
		return d.State == StateInSync && d.Step != StepWait
	}},
	{"only a wait has a duration", func(_ Observation, d Decision) bool { return d.Step != StepWait && d.After != 0 }},
	{"no wait exceeds the maximum backoff or the period", func(o Observation, d Decision) bool {
		return d.After > max(maxBackoff, o.Period) || d.After > maxBackoff && d.State != StateInSync && d.State != StateHeld && d.State != StatePostponed
	}},
}

func TestNext_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := observation(t)
		d := Next(o)
		for _, rule := range rules {
			if rule.broken(o, d) {
				t.Errorf("%s: %+v", rule.name, d)
			}
		}
		if d.Step == StepWait && d.After <= 0 && !waitsForEvent(o, d) {
			t.Errorf("the wait has no end: %+v", d)
		}
		// A diagnosis always succeeds.
		if isAction(d.Step) && d.Step != StepDiagnose {
			checkBackoff(t, o, d)
		}
	})
}

// waitsForEvent reports whether an event ends the wait. If the event is an action of a
// user, a condition reports it.
func waitsForEvent(o Observation, d Decision) bool {
	switch d.State {
	case StateBusy, StateDeleted, StateInvalid, StatePaused, StateAborted, StatePostponed, StateWaiting, StateInUse:
		return true // The rollout ends the wait of a postponed upgrade.
	case StateInSync, StateHeld:
		return o.Period == 0 || o.untrusted() // Nothing is applied again from an untrusted record.
	default:
		return false
	}
}

// checkBackoff fails if a failed step is repeated without backoff, or never.
func checkBackoff(t *rapid.T, o Observation, d Decision) {
	failure := &Failure{Target: TargetOf(d.Step, o), Attempts: 1, At: now}
	if Repairs(d.Step) {
		o.RepairFailure = failure
	} else {
		if before := o.Failure; before != nil && before.Target == failure.Target {
			failure.Attempts = before.Attempts + 1
		}
		o.Failure = failure
	}
	if again := Next(o); again.Step == d.Step {
		t.Errorf("%s is repeated after a failure without backoff", d.Step)
	}
	o.Now = now.Add(maxBackoff)
	if again := Next(o); again.Step == StepWait && !is(again.State, StateInSync, StateHeld, StatePostponed, StateWaiting) {
		t.Errorf("%s is never repeated after a failure: %+v", d.Step, again)
	}
}

// TestNext_FailedRepairDelaysNoUpgrade: the upgrade may correct the drift.
func TestNext_FailedRepairDelaysNoUpgrade(t *testing.T) {
	o := guarded(newest(2, api.StatusDeployed, "another"), failedTo(ofSpec, 1, time.Hour))
	o.Drifted = true
	o.RepairFailure = &Failure{Target: TargetKey{Goal: GoalCorrected}, Attempts: 9, At: now}
	if d := Next(o); d.Step != StepUpgrade {
		t.Errorf("%+v, want the upgrade", d)
	}
}

// TestNext_FailedVerificationDelaysNoUpgrade: the upgrade may fix the cause of the
// failure.
func TestNext_FailedVerificationDelaysNoUpgrade(t *testing.T) {
	o := guarded(newest(2, api.StatusDeployed, "another"), failedTo(ofSpec, 1, time.Hour))
	o.Unverified, o.VerifyRequested = true, true
	if d := Next(o); d.Step != StepVerify {
		t.Errorf("%+v, want the verification", d)
	}
	o.RepairFailure = &Failure{Target: TargetKey{Goal: GoalCorrected}, Attempts: 9, At: now}
	if d := Next(o); d.Step != StepUpgrade {
		t.Errorf("%+v, want the upgrade", d)
	}
}
