package reconcile

import (
	"strings"
	"testing"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/inventory"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/reconcile/status"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/rollout"
	"github.com/chartwright/chartwright/internal/watches"
)

// ofCharts sets the charts of the revisions, newest first. "new" is the chart of the
// kind.
func ofCharts(charts ...string) func(*snapshot) {
	return func(v *snapshot) {
		v.digests = release.Digests{Chart: "new", Values: "given"}
		for i, chart := range charts {
			v.History[i].ChartDigest, v.History[i].ValuesDigest = chart, "given"
		}
		if charts[0] != "new" {
			v.Observation.Newest.Digest = "older"
		}
	}
}

func edited(v *snapshot) { v.digests.Values = "edited values" }

// resumed marks the end of a hold at the time of this chart.
func resumed(chart string) func(*snapshot) { return marked(release.Marks{ResumedChart: chart}) }

func asksBack(o *plan.Observation) { o.Request = &plan.Request{Token: "asked", Revision: 1} }

func unready(failed bool) func(*snapshot) {
	return func(v *snapshot) {
		v.Health.Unready = []inventory.ObjectHealth{{Health: inventory.Health{Failed: failed}}}
	}
}

func fails(v *snapshot) { withFailure(plan.Target(v.Observation), api.EventUpgradeFailed, false)(v) }

func TestPosition(t *testing.T) {
	const failed, pending = api.StatusFailed, api.StatusPendingUpgrade
	byFailure := func(from int) func(*snapshot) {
		return func(v *snapshot) {
			isHeld(&v.Observation)
			marked(release.Marks{Held: &release.Held{Revision: 1, From: from, ByFailure: true}})(v)
		}
	}
	one, two, three := []string{dep}, []string{dep, sup}, []string{dep, failed, sup}
	for _, test := range []struct {
		name string
		v    *snapshot
		want rollout.Position
	}{
		{"nothing is installed", viewOf(nil), rollout.Skipped},
		{"the chart is the same", viewOf(one, ofCharts("new")), rollout.Done},
		{"new and not ready", viewOf(one, ofCharts("new"), unready(true)), rollout.Done},
		{"another chart", viewOf(one, ofCharts("old")), rollout.Waiting},
		{"another chart, after an older one failed", viewOf([]string{failed, dep}, ofCharts("old", "oldest")), rollout.Waiting},
		{"upgrade waits for an approval", viewOf(one, ofCharts("old"), fails, func(v *snapshot) { v.Failure.Waits = true }), rollout.Waiting},
		{"upgrade waits for an approval, after an edit", viewOf(one, ofCharts("old"), edited, fails, func(v *snapshot) { v.Failure.Waits = true }), rollout.Skipped},
		{"being deleted", viewOf(one, ofCharts("old"), beingDeleted), rollout.Skipped},
		{"paused", viewOf(one, ofCharts("old"), observed(isPaused)), rollout.Skipped},
		{"held release", viewOf(two, ofCharts("old", "new"), observed(isHeld), marked(release.Marks{Held: &release.Held{Revision: 1, From: 1}})), rollout.Skipped},
		{"revision of another program", viewOf(one, ofCharts("old"), observed(func(o *plan.Observation) { o.Newest.WrittenByUs = false })), rollout.Skipped},
		{"release not owned", viewOf(one, ofCharts("old"), observed(func(o *plan.Observation) { o.Newest.Owned = false })), rollout.Skipped},
		{"uninstalled by another program", viewOf([]string{api.StatusUninstalled}, ofCharts("old")), rollout.Skipped},
		{"invalid values", viewOf(one, ofCharts("old"), observed(func(o *plan.Observation) { o.Invalid = &plan.Problem{Reason: api.ReasonInvalidValues, Message: "why"} })), rollout.Skipped},
		{"upgrade running", viewOf(one, ofCharts("old"), runningStep(plan.StepUpgrade)), rollout.Moving},
		{"upgrade pending", viewOf([]string{pending, dep}, ofCharts("new", "old")), rollout.Moving},
		{"upgraded, before the action ends", viewOf(two, ofCharts("new", "old"), runningStep(plan.StepUpgrade)), rollout.Moving},
		{"upgraded and not ready", viewOf(two, ofCharts("new", "old"), unready(false)), rollout.Moving},
		{"upgraded and never ready", viewOf(two, ofCharts("new", "old"), unready(false), func(v *snapshot) { v.Overdue = true }), rollout.Failed},
		{"upgraded and not ready, long before a restart", viewOf(two, ofCharts("new", "old"), unready(false), func(v *snapshot) { v.progress.late = true }), rollout.Failed},
		{"upgraded without a controller's report, long before a restart", viewOf(two, ofCharts("new", "old"), func(v *snapshot) {
			v.Health.Unready, v.progress.late = []inventory.ObjectHealth{{Health: inventory.Health{OpenEnded: true}}}, true
		}), rollout.Moving},
		{"upgraded, object failed", viewOf(two, ofCharts("new", "old"), unready(true)), rollout.Failed},
		{"ready once", viewOf(two, ofCharts("new", "old"), unready(true), func(v *snapshot) { v.progress.wasReady = true }), rollout.Done},
		{"upgraded and ready", viewOf(two, ofCharts("new", "old")), rollout.Done},
		{"the upgrade failed", viewOf([]string{failed, dep}, ofCharts("new", "old")), rollout.Failed},
		{"the upgrade was interrupted", viewOf([]string{failed, dep}, ofCharts("new", "old"), func(v *snapshot) { v.interrupted = 2 }), rollout.Moving},
		{"failed after an interruption", viewOf([]string{failed, failed, dep}, ofCharts("new", "new", "old"), func(v *snapshot) { v.interrupted = 2 }), rollout.Failed},
		{"failed, retry running", viewOf([]string{pending, dep}, ofCharts("new", "old"), fails, runningStep(plan.StepUpgrade)), rollout.Failed},
		{"later edit failed, retry running", viewOf([]string{pending, dep, sup}, ofCharts("new", "new", "old"), fails), rollout.Done},
		{"failed before a revision was stored", viewOf(one, ofCharts("old"), fails), rollout.Failed},
		{"retry running", viewOf(one, ofCharts("old"), fails, runningStep(plan.StepUpgrade)), rollout.Failed},
		{"a later edit failed", viewOf([]string{failed, dep, sup}, ofCharts("new", "new", "old")), rollout.Done},
		{"rolled back after the upgrade failed", viewOf(three, ofCharts("old", "new", "old"), byFailure(2)), rollout.Failed},
		{"rolled back after another chart failed", viewOf(three, ofCharts("old", "older", "old"), byFailure(2)), rollout.Skipped},
		{"edited", viewOf(one, ofCharts("old"), edited), rollout.Moving},
		{"edit failed", viewOf(one, ofCharts("old"), edited, fails), rollout.Skipped},
		{"rollback failed", viewOf(two, ofCharts("old", "new"), observed(asksBack), fails), rollout.Skipped},
		{"upgrade and rollback failed", viewOf([]string{failed, dep}, ofCharts("new", "old"), observed(asksBack), fails), rollout.Failed},
		{"verification requested", viewOf(one, ofCharts("old"), observed(func(o *plan.Observation) { o.VerifyRequested = true })), rollout.Moving},
		{"hold ended", viewOf(two, ofCharts("old", "new"), resumed("new")), rollout.Moving},
		{"hold ended before a newer chart", viewOf(two, ofCharts("old", "new"), resumed("old")), rollout.Waiting},
		{"rolled back, hold ended before a newer chart", viewOf(two, ofCharts("old", "older"), func(v *snapshot) { v.History[0].Description.Description = "Rollback to 1" }), rollout.Waiting},
		{"hold expired", viewOf(two, ofCharts("old", "new"), observed(holdExpired), marked(release.Marks{Held: &release.Held{Revision: 1, From: 1}})), rollout.Moving},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := positionOf(test.v); got != test.want {
				t.Errorf("position %s, want %s", got, test.want)
			}
		})
	}
}

func TestMovedByEdit(t *testing.T) {
	const failed, pending = api.StatusFailed, api.StatusPendingUpgrade
	for _, test := range []struct {
		name string
		v    *snapshot
		want bool
	}{
		{"nothing is installed", viewOf(nil), false},
		{"another chart", viewOf([]string{dep}, ofCharts("old")), false},
		{"another chart, edited", viewOf([]string{dep}, ofCharts("old"), edited), true},
		{"upgrade pending", viewOf([]string{pending, dep}, ofCharts("new", "old")), false},
		{"upgraded", viewOf([]string{dep, sup}, ofCharts("new", "old")), false},
		{"upgraded and edited", viewOf([]string{dep, sup}, ofCharts("new", "old"), edited), true},
		{"later edit pending", viewOf([]string{pending, dep, sup}, ofCharts("new", "new", "old")), true},
		{"later edit deployed", viewOf([]string{dep, sup, sup}, ofCharts("new", "new", "old")), true},
		{"retry pending", viewOf([]string{pending, failed, dep}, ofCharts("new", "new", "old")), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := movedByEdit(test.v); got != test.want {
				t.Errorf("%t, want %t", got, test.want)
			}
		})
	}
}

func TestDowngrade(t *testing.T) {
	chart, err := chart.LoadDir(fstest.MapFS{"Chart.yaml": {Data: []byte("apiVersion: v2\nname: podset\nversion: 1.0.0\n")}})
	if err != nil {
		t.Fatal(err)
	}
	never := watches.Rollout{AllowDowngrade: new(false)}
	for _, test := range []struct {
		name    string
		policy  watches.Rollout
		version string
		v       *snapshot
		// want is the problem, and ready and update the conditions that report it.
		want, ready, update string
	}{
		{"allowed", watches.Rollout{}, "2.0.0", viewOf([]string{dep}, ofCharts("old")), "", "", ""},
		{"a later version", never, "0.9.0", viewOf([]string{dep}, ofCharts("old")), "", "", ""},
		{"the same version", never, "1.0.0", viewOf([]string{dep}, ofCharts("old")), "", "", ""},
		{"an earlier version", never, "2.0.0", viewOf([]string{dep}, ofCharts("old")), "older than the deployed 2.0.0", "Deployed", api.ReasonDowngradeRefused},
		{"a release candidate's release", never, "1.0.1-rc.1", viewOf([]string{dep}, ofCharts("old")), "older than the deployed 1.0.1-rc.1", "Deployed", api.ReasonDowngradeRefused},
		{"no version", never, "latest", viewOf([]string{dep}, ofCharts("old")), "", "", ""},
		{"a failed install", never, "2.0.0", viewOf([]string{api.StatusFailed, dep}, ofCharts("old", "older"), func(v *snapshot) { v.History[1].ChartVersion = "0.5.0" }), "", "", ""},
		{"an edit", never, "2.0.0", viewOf([]string{dep}, ofCharts("old"), edited), "older than the deployed 2.0.0", api.ReasonDowngradeRefused, ""},
		{"held", never, "2.0.0", viewOf([]string{dep, sup}, ofCharts("old", "old"), observed(isHeld), edited, marked(release.Marks{Held: &release.Held{Revision: 1, From: 1}})), "older than the deployed 2.0.0", "Deployed", api.ReasonDowngradeRefused},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := test.v
			if v.History[0].Status == dep {
				v.History[0].ChartVersion = test.version
			}
			r := &Reconciler{Kind: catalog.Kind{Watch: watches.Watch{Rollout: test.policy}, Chart: chart}}
			why := r.downgrade(v)
			if (why == "") != (test.want == "") || !strings.Contains(why, test.want) {
				t.Fatalf("downgrade() = %q, want %q", why, test.want)
			}
			if why == "" {
				return
			}
			r.refuseDowngrade(v, why)
			s := status.Compute(&v.Snapshot, plan.Next(v.Observation), nil)
			if ready := meta.FindStatusCondition(s.Conditions, api.ConditionReady); ready.Reason != test.ready {
				t.Errorf("Ready is %s: %s, want %s", ready.Reason, ready.Message, test.ready)
			}
			update := meta.FindStatusCondition(s.Conditions, api.ConditionUpdateAvailable)
			if (update == nil) != (test.update == "") || update != nil && update.Reason != test.update {
				t.Errorf("UpdateAvailable is %+v, want %s", update, test.update)
			}
		})
	}
}
