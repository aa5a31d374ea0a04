package reconcile

import (
	"fmt"
	"slices"

	"github.com/Masterminds/semver/v3"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/rollout"
)

// standingOf tells where a custom resource stands in the rollout of its kind's
// chart. All of it is read from its records and objects, but for a failure that
// came before there was a record: after a restart one is tried once more.
func standingOf(v *view) rollout.Standing {
	o := v.observation
	fails := v.failure != nil && v.failure.Aim == plan.Aim(o)
	switch {
	case !concerned(v), o.Paused:
		return rollout.Aside
	case o.Held != nil && !o.Held.Over:
		if v.marks.Held.ByFailure && chartOf(v.history, v.marks.Held.From) == v.digests.Chart {
			return rollout.Failed
		}
		return rollout.Aside
	case !outdated(v):
		return arrived(v, fails)
	case fails && (asked(v) || o.Request != nil):
		// It is what the person asks for that fails.
		return rollout.Aside
	case fails:
		return rollout.Failed
	case asked(v), o.Running != nil && o.Running.Step == plan.StepUpgrade:
		return rollout.Moving
	default:
		return rollout.Waiting
	}
}

// concerned tells whether there is a release that a chart can upgrade.
func concerned(v *view) bool {
	o := v.observation
	return !o.Deleting && !o.Conflict && o.Invalid == "" && o.Newest != nil && o.Newest.Ours && o.Newest.Genuine && !api.Uninstalled(o.Newest.Status)
}

// outdated tells whether the newest revision is of another chart than the kind's.
func outdated(v *view) bool { return concerned(v) && v.history[0].ChartDigest != v.digests.Chart }

// arrived tells how one does whose newest revision is of the kind's chart. One
// that never had another is new, and what was deployed by it once has arrived:
// their troubles are their own. One that failed has failed while it is tried again,
// too: each try would else let others go.
func arrived(v *view, fails bool) rollout.Standing {
	o := v.observation
	runs, _ := deployed(v.history)
	upgraded := slices.ContainsFunc(v.history, func(r release.Record) bool {
		return r.ChartDigest != "" && r.ChartDigest != v.digests.Chart
	})
	failed := o.Newest.Status == api.StatusFailed || fails && api.Pending(o.Newest.Status)
	switch {
	case !upgraded, failed && runs.ChartDigest == v.digests.Chart:
		return rollout.Done
	case failed:
		return rollout.Failed
	case healthy(v), v.progress.wasReady:
		return rollout.Done
	case v.standing() == openEnded:
		return rollout.Moving
	case v.overdue, v.progress.late, len(v.health.Unready) > 0 && v.health.Unready[0].Failed:
		// One whose time was up before this process began may be why the rollout
		// had stopped: it does not go on until that one is ready.
		return rollout.Failed
	default:
		return rollout.Moving
	}
}

// asideReason says why one is passed over, empty where it would be told
// otherwise.
func asideReason(v *view) string {
	o := v.observation
	switch {
	case o.Held != nil && !o.Held.Over:
		return api.ReasonHeld
	case o.Paused && !asked(v) && healthy(v):
		return api.ReasonPaused
	default:
		return ""
	}
}

// healthy tells whether what runs is ready.
func healthy(v *view) bool {
	return v.observation.Newest.Status == api.StatusDeployed && len(v.health.Unready) == 0
}

// asked tells whether a person wants it to be upgraded now: the spec was edited,
// a hold was ended, or everything is to be verified. The end of a hold asks for
// the chart that was there at the time, and for none that comes later.
func asked(v *view) bool {
	o := v.observation
	ends := o.Held != nil && o.Held.Over
	resumed := v.marks.ResumedChart != "" && v.marks.ResumedChart == v.digests.Chart
	return v.history[0].ValuesDigest != v.digests.Values || ends || resumed || o.VerifyRequested
}

// chartOf returns the digest of the chart that a revision was made of.
func chartOf(history []release.Record, revision int) string {
	for _, record := range history {
		if record.Revision == revision {
			return record.ChartDigest
		}
	}
	return ""
}

// downgrade says why the kind's chart is not to take the place of the one that
// is deployed, empty where it may.
func (r *Reconciler) downgrade(v *view) string {
	runs, ok := deployed(v.history)
	if !ok || r.Kind.Rollout.Downgrades() || !concerned(v) || runs.ChartDigest == v.digests.Chart {
		return ""
	}
	chart := r.Kind.Chart
	// A version that cannot be read compares with nothing.
	from, err := semver.NewVersion(runs.ChartVersion)
	to, err2 := semver.NewVersion(chart.Version())
	if err != nil || err2 != nil || !to.LessThan(from) {
		return ""
	}
	return fmt.Sprintf("the operator has chart %s-%s, which is older than %s that is deployed, and rollout.allowDowngrade is false in its watches file: run an operator that has the newer chart, or allow it",
		chart.Name(), chart.Version(), runs.ChartVersion)
}

// refuseDowngrade keeps what is deployed. Where the spec asks for something else
// there is no chart to follow it with.
func (r *Reconciler) refuseDowngrade(v *view, why string) {
	o := &v.observation
	held := o.Held != nil && !o.Held.Over
	if !held && (asked(v) || o.Newest.Status != api.StatusDeployed) {
		o.Invalid, v.invalidReason = why, api.ReasonDowngradeRefused
		return
	}
	o.Postponed = !held
	r.offer(v, rollout.Turn{}, api.ReasonDowngradeRefused)
}
