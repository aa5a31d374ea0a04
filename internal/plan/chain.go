package plan

import (
	"time"

	"github.com/chartwright/chartwright/internal/api"
)

// check looks for one state. It returns false where the state is another.
type check func(Observation) (Decision, bool)

// chain holds the checks in the order in which they count. The last always
// applies.
var chain = []check{
	busy,              // one action on a release at a time, whatever else is to be done
	deletionPaused,    // a person keeps even a deletion from going on
	deleted,           // nothing is left to uninstall: let the custom resource go
	deleting,          // uninstall before the custom resource goes
	paused,            // a person looks at it, or repairs something by hand
	conflict,          // somebody else's release is never touched
	unguarded,         // the finalizer comes before anything that it has to clean up
	stripped,          // "helm test" writes a record without its annotations, and changes nothing
	locked,            // an action that nobody runs any more is recorded as failed
	untidy,            // of two deployed revisions the newer counts, and what was overtaken has failed
	uninstalling,      // an uninstall is finished once it has begun, then installed anew
	rollbackRequested, // what a person asks for at night comes before the spec
	aborted,           // what a person has aborted is not tried again by itself
	heldBack,          // whoever moves a held release, it goes back; a hold that is over ends
	drifted,           // repair what runs, whatever became of the try to change it
	unverified,        // keep what runs as it is while the spec cannot be followed
	invalid,           // what runs goes on running until the spec can be used
	absent,            // install
	unmanaged,         // take over what somebody else has installed, undo what somebody else has changed
	failed,            // try again, ever more slowly, but at once after an edit; or go back
	outOfSync,         // upgrade
	due,               // apply every object again, where somebody asks for it or nothing is known
	unrecorded,        // a finished Job must not run again after a restart
	unsigned,          // sign the record with the current key
	untested,          // run the tests on what is in sync
	unready,           // find out what keeps objects from being ready
	held,              // stay, whatever the spec says
	postponed,         // stay, until it is the custom resource's turn
	inSync,            // nothing to do
}

// Next returns what to do.
func Next(o Observation) Decision {
	for _, look := range chain {
		if decision, ok := look(o); ok {
			if decision.State == StatePaused && decision.Pending == "" {
				o.Paused, o.Earliest = false, time.Time{}
				decision.Pending = Next(o).Step
			}
			return decision
		}
	}
	panic("decide: no check applied")
}

// paused leaves it to Next to tell what would be done all the same.
func paused(o Observation) (Decision, bool) {
	return Decision{State: StatePaused, Step: StepWait}, o.Paused
}

func conflict(o Observation) (Decision, bool) {
	return Decision{State: StateConflict, Step: StepWait, After: maxBackoff}, o.Conflict
}

// unguarded leaves alone what could not be installed anyway.
func unguarded(o Observation) (Decision, bool) {
	return Decision{State: StateUnguarded, Step: StepAddFinalizer}, (!o.Finalizer || o.Former) && (o.Invalid == "" || o.Newest != nil)
}

// stripped comes before every check that asks whose the newest revision is.
func stripped(o Observation) (Decision, bool) {
	return retry(o, Decision{State: StateStripped, Step: StepRestore}), o.stored() && o.Newest.Stripped
}

// foreign waits for what somebody else has begun: it ends, or its time does.
func foreign(o Observation, state State) (Decision, bool) {
	if o.Newest.Genuine {
		return Decision{}, false
	}
	left := o.Newest.Began.Add(o.Newest.Timeout).Sub(o.Now)
	return Decision{State: state, Step: StepWait, After: left}, left > 0
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

func untidy(o Observation) (Decision, bool) {
	return retry(o, Decision{State: StateUntidy, Step: StepTidy}), o.Untidy && o.stored()
}

// drifted leaves alone what an upgrade is about to apply anyway.
func drifted(o Observation) (Decision, bool) {
	current := o.Newest != nil && (o.Newest.Digest == o.Desired || o.staying())
	if !o.Drifted || !o.runs() || !current && !o.stuck() {
		return Decision{}, false
	}
	d := retry(o, Decision{State: StateDrifted, Step: StepRepair})
	// A repair that has to wait holds up no upgrade, which may be the cure.
	return d, d.Step != StepWait || current
}

// unverified is due where the spec can be followed, and due comes after that.
func unverified(o Observation) (Decision, bool) {
	if !o.Unverified && !o.VerifyRequested || !o.runs() || !o.stuck() {
		return Decision{}, false
	}
	d := retry(o, Decision{State: StateUnverified, Step: StepVerify})
	return d, d.Step != StepWait
}

func invalid(o Observation) (Decision, bool) {
	return Decision{State: StateInvalid, Step: StepWait}, o.Invalid != "" && !o.holding()
}

func absent(o Observation) (Decision, bool) {
	if o.Newest != nil && o.Newest.Status != api.StatusUninstalled {
		return Decision{}, false
	}
	return retry(o, Decision{State: StateAbsent, Step: StepInstall}), true
}

func unmanaged(o Observation) (Decision, bool) {
	switch {
	case o.Newest.Status == api.StatusUninstalled:
		return Decision{}, false
	case o.Adoptable:
		return retry(o, Decision{State: StateUnmanaged, Step: StepAdopt}), true
	case !o.Newest.Genuine, o.Newest.Untrusted && !o.staying():
		return retry(o, Decision{State: StateUnmanaged, Step: StepUpgrade}), true
	}
	return Decision{}, false
}

func failed(o Observation) (Decision, bool) {
	if o.staying() {
		return Decision{}, false
	}
	stored := o.Newest.Digest == o.Desired && o.Newest.Status == api.StatusFailed
	// The last try may have ended before it stored a revision.
	unstored := o.Newest.Digest != o.Desired && o.Failure != nil && o.Failure.Aim == Aim(o)
	overdue := o.Overdue && o.runs() && o.Newest.Digest == o.Desired
	switch {
	case overdue && o.Retries > 0 && o.LastGood > 0:
		return retry(o, Decision{State: StateFailed, Step: StepRollback, Revision: o.LastGood}), true
	case stored && o.Newest.Number == 1:
		return retry(o, Decision{State: StateFailed, Step: StepInstall}), true
	case stored && o.Retries > 0 && o.LastGood > 0 && o.Failure != nil && o.Failure.Aim == Aim(o) && o.Failure.Attempts >= o.Retries:
		back := Decision{State: StateFailed, Step: StepRollback, Revision: o.LastGood}
		if o.Failure.Attempts > o.Retries {
			// It was tried, and has failed, too.
			back = retry(o, back)
		}
		return back, true
	case stored, unstored:
		return retry(o, Decision{State: StateFailed, Step: StepUpgrade}), true
	}
	return Decision{}, false
}

func outOfSync(o Observation) (Decision, bool) {
	if o.staying() || o.Newest.Digest == o.Desired && o.Newest.Status == api.StatusDeployed {
		return Decision{}, false
	}
	return retry(o, Decision{State: StateOutOfSync, Step: StepUpgrade}), true
}

func due(o Observation) (Decision, bool) {
	passed := o.Period > 0 && !o.Now.Before(o.Applied.Add(o.Period))
	if !passed && !o.Unverified && !o.VerifyRequested || o.untrusted() {
		return Decision{}, false
	}
	return retry(o, Decision{State: StateDue, Step: StepVerify}), true
}

func unrecorded(o Observation) (Decision, bool) {
	return retry(o, Decision{State: StateUnrecorded, Step: StepRecord}), o.Unrecorded && o.runs()
}

func unsigned(o Observation) (Decision, bool) {
	return retry(o, Decision{State: StateUnsigned, Step: StepSign}), o.Unsigned && o.runs()
}

func untested(o Observation) (Decision, bool) {
	return retry(o, Decision{State: StateUntested, Step: StepTest}), o.TestRequested && !o.untrusted()
}

func unready(o Observation) (Decision, bool) {
	return Decision{State: StateUnready, Step: StepDiagnose}, o.Puzzling
}

func held(o Observation) (Decision, bool) {
	return resting(o, StateHeld), o.holding()
}

func postponed(o Observation) (Decision, bool) {
	return resting(o, StatePostponed), o.Postponed
}

func inSync(o Observation) (Decision, bool) {
	return resting(o, StateInSync), true
}

// resting waits until every object is to be applied again.
func resting(o Observation, state State) Decision {
	d := Decision{State: state, Step: StepWait}
	if o.Period > 0 {
		d.After = o.Applied.Add(o.Period).Sub(o.Now)
	}
	return d
}
