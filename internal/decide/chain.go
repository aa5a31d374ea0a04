package decide

import (
	"time"

	"github.com/chartwright/chartwright/internal/api"
)

// check looks for one state. It returns false where the state is another.
type check func(Observation) (Decision, bool)

// chain holds the checks in the order in which they count. The last always
// applies.
var chain = []check{
	busy,         // one action on a release at a time, whatever else is to be done
	deleted,      // nothing is left to uninstall: let the custom resource go
	deleting,     // uninstall before the custom resource goes
	conflict,     // somebody else's release is never touched
	invalid,      // what runs goes on running until the spec can be used
	unguarded,    // the finalizer comes before anything that it has to clean up
	locked,       // an action that nobody runs any more is recorded as failed
	uninstalling, // an uninstall is finished once it has begun, then installed anew
	unmanaged,    // take over what somebody's helm install has made
	absent,       // install
	drifted,      // repair what runs, whatever became of the try to change it
	failed,       // try again, ever more slowly, but at once after an edit
	outOfSync,    // upgrade
	due,          // apply every object again, where a period is set or nothing is known
	inSync,       // nothing to do
}

// Next returns what to do.
func Next(o Observation) Decision {
	for _, look := range chain {
		if decision, ok := look(o); ok {
			return decision
		}
	}
	panic("decide: no check applied")
}

func busy(o Observation) (Decision, bool) {
	return Decision{State: StateBusy, Step: StepWait}, o.Running != nil
}

func deleted(o Observation) (Decision, bool) {
	if !o.Deleting || o.Newest != nil && o.Newest.Ours || o.Orphans {
		return Decision{}, false
	}
	if !o.Finalizer {
		return Decision{State: StateDeleted, Step: StepWait}, true
	}
	return Decision{State: StateDeleted, Step: StepRemoveFinalizer}, true
}

// foreign waits for what somebody else has begun: it ends, or its time does.
func foreign(o Observation, state State) (Decision, bool) {
	if o.Newest.Genuine {
		return Decision{}, false
	}
	left := o.Newest.Began.Add(o.Newest.Timeout).Sub(o.Now)
	return Decision{State: state, Step: StepWait, After: left}, left > 0
}

func deleting(o Observation) (Decision, bool) {
	if !o.Deleting {
		return Decision{}, false
	}
	if !o.Finalizer {
		// Somebody took the finalizer away: the release is theirs now.
		return Decision{State: StateDeleted, Step: StepWait}, true
	}
	if o.Newest != nil && o.Newest.Status == api.StatusUninstalling {
		if wait, ok := foreign(o, StateDeleting); ok {
			return wait, true
		}
	}
	return retry(o, Decision{State: StateDeleting, Step: StepUninstall}), true
}

func conflict(o Observation) (Decision, bool) {
	return Decision{State: StateConflict, Step: StepWait, After: maxBackoff}, o.Conflict
}

func invalid(o Observation) (Decision, bool) {
	return Decision{State: StateInvalid, Step: StepWait}, o.Invalid != ""
}

func unguarded(o Observation) (Decision, bool) {
	return Decision{State: StateUnguarded, Step: StepAddFinalizer}, !o.Finalizer
}

func locked(o Observation) (Decision, bool) {
	if o.Newest == nil || !api.Pending(o.Newest.Status) {
		return Decision{}, false
	}
	// It may be somebody's helm upgrade.
	if wait, ok := foreign(o, StateLocked); ok {
		return wait, true
	}
	return retry(o, Decision{State: StateLocked, Step: StepUnlock}), true
}

func uninstalling(o Observation) (Decision, bool) {
	if o.Newest == nil || !o.Newest.Ours || o.Newest.Status != api.StatusUninstalling {
		return Decision{}, false
	}
	// It may be somebody's helm uninstall.
	if wait, ok := foreign(o, StateUninstalling); ok {
		return wait, true
	}
	return retry(o, Decision{State: StateUninstalling, Step: StepUninstall}), true
}

func unmanaged(o Observation) (Decision, bool) {
	if !o.Adoptable || o.Newest == nil || o.Newest.Status == api.StatusUninstalled {
		return Decision{}, false
	}
	return retry(o, Decision{State: StateUnmanaged, Step: StepAdopt}), true
}

// drifted leaves alone what an upgrade is about to apply anyway.
func drifted(o Observation) (Decision, bool) {
	waiting := o.Failure != nil && o.Failure.Aim == o.Desired
	if !o.Drifted || o.Newest.Status != api.StatusDeployed || o.Newest.Digest != o.Desired && !waiting {
		return Decision{}, false
	}
	d := retry(o, Decision{State: StateDrifted, Step: StepRepair})
	// A repair that has to wait holds up no upgrade, which may be the cure.
	return d, d.Step != StepWait || o.Newest.Digest == o.Desired
}

func absent(o Observation) (Decision, bool) {
	if o.Newest != nil && o.Newest.Status != api.StatusUninstalled {
		return Decision{}, false
	}
	return retry(o, Decision{State: StateAbsent, Step: StepInstall}), true
}

func failed(o Observation) (Decision, bool) {
	sameDigest := o.Newest.Digest == o.Desired
	switch {
	case sameDigest && o.Newest.Status == api.StatusFailed && o.Newest.Number == 1:
		return retry(o, Decision{State: StateFailed, Step: StepInstall}), true
	case sameDigest && o.Newest.Status == api.StatusFailed,
		// The last try ended before it stored a revision.
		!sameDigest && o.Failure != nil && o.Failure.Aim == o.Desired:
		return retry(o, Decision{State: StateFailed, Step: StepUpgrade}), true
	}
	return Decision{}, false
}

func outOfSync(o Observation) (Decision, bool) {
	if o.Newest.Digest == o.Desired && o.Newest.Status == api.StatusDeployed {
		return Decision{}, false
	}
	return retry(o, Decision{State: StateOutOfSync, Step: StepUpgrade}), true
}

func due(o Observation) (Decision, bool) {
	passed := o.Period > 0 && !o.Now.Before(o.Applied.Add(o.Period))
	if !passed && !o.Unverified {
		return Decision{}, false
	}
	return retry(o, Decision{State: StateDue, Step: StepVerify}), true
}

func inSync(o Observation) (Decision, bool) {
	d := Decision{State: StateInSync, Step: StepWait}
	if o.Period > 0 {
		d.After = o.Applied.Add(o.Period).Sub(o.Now)
	}
	return d, true
}

// Bounds of the time between tries.
const (
	minBackoff = time.Second
	maxBackoff = 5 * time.Minute
)

// retry turns a step into a wait while the last failure with the same aim is
// too fresh.
func retry(o Observation, d Decision) Decision {
	failure := o.Failure
	if Repairs(d.Step) {
		failure = o.RepairFailure
	}
	if failure == nil || failure.Aim != Aim(d.Step, o.Desired) {
		return d
	}
	if left := failure.At.Add(backoff(failure.Attempts)).Sub(o.Now); left > 0 {
		d.Step, d.After = StepWait, left
	}
	return d
}

// Aim is what a step is to bring about: a digest, or that the release is gone.
func Aim(step Step, desired string) string {
	switch {
	case step == StepUninstall:
		return "uninstalled"
	case Repairs(step):
		return "repaired"
	}
	return desired
}

// Repairs tells the steps that bring back what runs from those that change it.
func Repairs(step Step) bool { return step == StepRepair || step == StepVerify }

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
