package plan

import "github.com/chartwright/chartwright/internal/api"

// The checks of custom resources that are being deleted. A pause does not keep
// them from it unless it says so.

func deletionPaused(o Observation) (Decision, bool) {
	return Decision{State: StatePaused, Step: StepWait, Pending: StepUninstall}, o.Deleting && o.guarded() && o.PausedDeletion
}

func deleted(o Observation) (Decision, bool) {
	switch {
	case !o.Deleting:
		return Decision{}, false
	case !o.guarded():
		// Where a release is left, somebody took the finalizer away: it is
		// theirs now.
		return Decision{State: StateDeleted, Step: StepWait}, true
	case o.Newest != nil && (o.Newest.Ours || o.Inherited), o.Orphans, o.Newest == nil && o.Unsearched && !o.Conflict:
		return Decision{}, false
	}
	return Decision{State: StateDeleted, Step: StepRemoveFinalizer}, true
}

func deleting(o Observation) (Decision, bool) {
	if !o.Deleting {
		return Decision{}, false
	}
	if o.Orphan {
		return retry(o, Decision{State: StateDeleting, Step: StepOrphan}), true
	}
	if o.AbortUninstall {
		return Decision{State: StateAborted, Step: StepWait}, true
	}
	if o.Newest != nil && o.Newest.Status == api.StatusUninstalling {
		if wait, ok := foreign(o, StateDeleting); ok {
			return wait, true
		}
	}
	return retry(o, Decision{State: StateDeleting, Step: StepUninstall}), true
}
