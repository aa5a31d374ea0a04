package plan

import "github.com/chartwright/chartwright/internal/api"

// The checks of requested rollbacks, of holds, and of rollbacks after failures. A
// release that was rolled back is held: it follows the spec again when the spec is
// edited or a user releases the hold.

// rollbackRequested applies to requests once there is a release. A request does not
// need a valid spec, because the spec may be the problem.
func rollbackRequested(o Observation) bool { return o.Request != nil && o.stored() }

// rollback answers a request. A failed request expires, like a hold, when the spec
// is edited. Drift is corrected during the backoff of a request.
func rollback(o Observation) Decision {
	d := Decision{Step: StepRefuse}
	switch {
	case o.Request.Resume:
		d.Step = StepResume
	case o.Request.Revision > 0 && !o.Request.Expired:
		d.Step, d.Revision = StepRollback, o.Request.Revision
	}
	if d = retry(o, d); d.Step != StepWait {
		return d
	}
	if isDrifted(o) {
		repair := retry(o, Decision{State: StateDrifted, Step: StepRepair})
		if repair.Step != StepWait {
			return repair
		}
		d.After = min(d.After, repair.After)
	}
	if isUnverified(o) {
		return retry(o, Decision{State: StateUnverified, Step: StepVerify})
	}
	return d
}

// holdBroken reports whether a held release differs from its hold, or whether an
// expired hold must be ended because the release follows the new spec already.
func holdBroken(o Observation) bool {
	if o.Held == nil || !o.stored() {
		return false
	}
	atRest := o.Newest.WrittenByUs && o.Newest.Status == api.StatusDeployed
	if o.Holding() {
		return !atRest
	}
	return atRest && o.Newest.Digest == o.Desired && o.Invalid == nil
}

func restoreHold(o Observation) Decision {
	if o.Holding() {
		return retry(o, Decision{Step: StepRollback, Revision: o.Held.Revision})
	}
	return retry(o, Decision{Step: StepResume})
}

// failedAt is the point at which the last attempt to follow the spec failed.
type failedAt int

const (
	notFailed failedAt = iota
	// unstored: before a revision was stored.
	unstored
	// stored: the newest revision has failed.
	stored
	// overdue: the newest revision is deployed, and its objects did not become ready in
	// time.
	overdue
)

// failureOf returns the point at which the last attempt to follow the spec failed.
func failureOf(o Observation) failedAt {
	current := o.Newest.Digest == o.Desired
	switch {
	case o.staying():
		return notFailed
	case current && o.Newest.Status == api.StatusFailed:
		return stored
	case current && o.Overdue && o.runs() && o.Retries > 0 && o.LastGood > 0:
		return overdue
	case !current && o.failing():
		return unstored
	default:
		return notFailed
	}
}

// remediate retries a failed action or rolls back to the last good revision, see
// rollsBack. A failed first install is retried as an install.
func remediate(o Observation) Decision {
	at := failureOf(o)
	back := Decision{Step: StepRollback, Revision: o.LastGood}
	switch {
	case rollsBack(o, at) && at == stored && o.Failure.counted() == o.Retries && !o.Failure.Transient:
		// The backoff is that of the upgrade, which is not retried.
		return back
	case rollsBack(o, at):
		return retry(o, back)
	case at == stored && o.Newest.Number == 1:
		return retry(o, Decision{Step: StepInstall})
	default:
		return retry(o, Decision{Step: StepUpgrade})
	}
}

// rollsBack is the remediation policy: a release is rolled back to the last good
// revision after as many failures as the kind allows, or as soon as its objects are
// overdue. After a failure that stored no revision there is nothing to roll back.
func rollsBack(o Observation, at failedAt) bool {
	switch {
	case o.Retries == 0 || o.LastGood == 0:
		return false
	case at == overdue:
		return true
	default:
		return at == stored && o.Newest.Number > 1 && o.failing() && !o.waits() && o.Failure.counted() >= o.Retries
	}
}

// counted returns the number of failures in a row that may have their cause in the target.
func (f *Failure) counted() int { return f.Attempts - f.Transients }
