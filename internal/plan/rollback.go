package plan

import "github.com/chartwright/chartwright/internal/api"

// The checks of rollbacks. A release that was rolled back is held: it follows
// the spec again when the spec is edited, or when a person says so.

// rollbackRequested answers a request once there is a release to answer it for.
// It needs no valid spec: the spec is what may be wrong. One that has failed ends
// like a hold when the spec is edited.
func rollbackRequested(o Observation) (Decision, bool) {
	if o.Request == nil || !o.stored() {
		return Decision{}, false
	}
	d := Decision{State: StateRollbackRequested, Step: StepRefuse}
	switch {
	case o.Request.Resume:
		d.Step = StepResume
	case o.Request.Revision > 0 && !o.Request.Over:
		d.Step, d.Revision = StepRollback, o.Request.Revision
	}
	if d = retry(o, d); d.Step == StepWait {
		d = meanwhile(o, d)
	}
	return d, true
}

// meanwhile keeps what runs as it is while a request waits for another try.
func meanwhile(o Observation, wait Decision) Decision {
	for _, look := range []check{drifted, unverified} {
		switch d, ok := look(o); {
		case ok && d.Step != StepWait:
			return d
		case ok:
			wait.After = min(wait.After, d.After)
		}
	}
	return wait
}

// heldBack brings a held release back where somebody else has moved it or the
// rollback failed half-way, and ends a hold that is over where nothing else
// will: what runs is what the new spec asks for.
func heldBack(o Observation) (Decision, bool) {
	if o.Held == nil || !o.stored() {
		return Decision{}, false
	}
	atRest := o.Newest.Genuine && o.Newest.Status == api.StatusDeployed
	switch {
	case o.holding() && !atRest:
		return retry(o, Decision{State: StateHeld, Step: StepRollback, Revision: o.Held.Revision}), true
	case o.Held.Over && atRest && o.Newest.Digest == o.Desired && o.Invalid == "":
		return retry(o, Decision{State: StateHeld, Step: StepResume}), true
	}
	return Decision{}, false
}
