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

// ofCharts says of which charts the revisions are, newest first, where "new" is
// that of the kind.
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

func edited(v *snapshot) { v.digests.Values = "given anew" }

// resumed says that a hold ended while the kind had this chart.
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
		{"it goes", viewOf(one, ofCharts("old"), beingDeleted), rollout.Skipped},
		{"it is paused", viewOf(one, ofCharts("old"), observed(isPaused)), rollout.Skipped},
		{"it is held", viewOf(two, ofCharts("old", "new"), observed(isHeld), marked(release.Marks{Held: &release.Held{Revision: 1, From: 1}})), rollout.Skipped},
		{"another's revision", viewOf(one, ofCharts("old"), observed(func(o *plan.Observation) { o.Newest.WrittenByUs = false })), rollout.Skipped},
		{"another's release", viewOf(one, ofCharts("old"), observed(func(o *plan.Observation) { o.Newest.Owned = false })), rollout.Skipped},
		{"uninstalled behind our back", viewOf([]string{api.StatusUninstalled}, ofCharts("old")), rollout.Skipped},
		{"its values cannot be had", viewOf(one, ofCharts("old"), observed(func(o *plan.Observation) { o.Invalid = &plan.Problem{Reason: api.ReasonInvalidValues, Message: "why"} })), rollout.Skipped},
		{"its upgrade runs", viewOf(one, ofCharts("old"), runningStep(plan.StepUpgrade)), rollout.Moving},
		{"its upgrade is stored", viewOf([]string{pending, dep}, ofCharts("new", "old")), rollout.Moving},
		{"upgraded and not ready", viewOf(two, ofCharts("new", "old"), unready(false)), rollout.Moving},
		{"upgraded and never ready", viewOf(two, ofCharts("new", "old"), unready(false), func(v *snapshot) { v.Overdue = true }), rollout.Failed},
		{"upgraded and not ready, long before this process began", viewOf(two, ofCharts("new", "old"), unready(false), func(v *snapshot) { v.progress.late = true }), rollout.Failed},
		{"upgraded, and no controller has reported, long before this process began", viewOf(two, ofCharts("new", "old"), func(v *snapshot) {
			v.Health.Unready, v.progress.late = []inventory.ObjectHealth{{Health: inventory.Health{OpenEnded: true}}}, true
		}), rollout.Moving},
		{"upgraded and broken", viewOf(two, ofCharts("new", "old"), unready(true)), rollout.Failed},
		{"ready once", viewOf(two, ofCharts("new", "old"), unready(true), func(v *snapshot) { v.progress.wasReady = true }), rollout.Done},
		{"upgraded and ready", viewOf(two, ofCharts("new", "old")), rollout.Done},
		{"the upgrade failed", viewOf([]string{failed, dep}, ofCharts("new", "old")), rollout.Failed},
		{"it failed, and is tried again", viewOf([]string{pending, dep}, ofCharts("new", "old"), fails, runningStep(plan.StepUpgrade)), rollout.Failed},
		{"a later edit failed, and is tried again", viewOf([]string{pending, dep, sup}, ofCharts("new", "new", "old"), fails), rollout.Done},
		{"it failed before it was stored", viewOf(one, ofCharts("old"), fails), rollout.Failed},
		{"it is tried again", viewOf(one, ofCharts("old"), fails, runningStep(plan.StepUpgrade)), rollout.Failed},
		{"a later edit failed", viewOf([]string{failed, dep, sup}, ofCharts("new", "new", "old")), rollout.Done},
		{"rolled back as it failed", viewOf(three, ofCharts("old", "new", "old"), byFailure(2)), rollout.Failed},
		{"rolled back as another chart failed", viewOf(three, ofCharts("old", "older", "old"), byFailure(2)), rollout.Skipped},
		{"edited", viewOf(one, ofCharts("old"), edited), rollout.Moving},
		{"edited in vain", viewOf(one, ofCharts("old"), edited, fails), rollout.Skipped},
		{"rolled back in vain", viewOf(two, ofCharts("old", "new"), observed(asksBack), fails), rollout.Skipped},
		{"the upgrade failed, and the rollback, too", viewOf([]string{failed, dep}, ofCharts("new", "old"), observed(asksBack), fails), rollout.Failed},
		{"asked to reconcile", viewOf(one, ofCharts("old"), observed(func(o *plan.Observation) { o.VerifyRequested = true })), rollout.Moving},
		{"held no more", viewOf(two, ofCharts("old", "new"), resumed("new")), rollout.Moving},
		{"held no more, before another chart came", viewOf(two, ofCharts("old", "new"), resumed("old")), rollout.Waiting},
		{"rolled back, and held no more before another chart came", viewOf(two, ofCharts("old", "older"), func(v *snapshot) { v.History[0].Description.Description = "Rollback to 1" }), rollout.Waiting},
		{"its hold is over", viewOf(two, ofCharts("old", "new"), observed(holdIsOver), marked(release.Marks{Held: &release.Held{Revision: 1, From: 1}})), rollout.Moving},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := positionOf(test.v); got != test.want {
				t.Errorf("it stands %s, expected %s", got, test.want)
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
		// want is what stands in the way, and what of the status tells it.
		want, ready, update string
	}{
		{"allowed", watches.Rollout{}, "2.0.0", viewOf([]string{dep}, ofCharts("old")), "", "", ""},
		{"a later one", never, "0.9.0", viewOf([]string{dep}, ofCharts("old")), "", "", ""},
		{"the same version", never, "1.0.0", viewOf([]string{dep}, ofCharts("old")), "", "", ""},
		{"an earlier one", never, "2.0.0", viewOf([]string{dep}, ofCharts("old")), "older than the deployed 2.0.0", "Deployed", api.ReasonDowngradeRefused},
		{"a release candidate's release", never, "1.0.1-rc.1", viewOf([]string{dep}, ofCharts("old")), "older than the deployed 1.0.1-rc.1", "Deployed", api.ReasonDowngradeRefused},
		{"no version", never, "latest", viewOf([]string{dep}, ofCharts("old")), "", "", ""},
		{"what failed was never deployed", never, "2.0.0", viewOf([]string{api.StatusFailed, dep}, ofCharts("old", "older"), func(v *snapshot) { v.History[1].ChartVersion = "0.5.0" }), "", "", ""},
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
				t.Fatalf("in its way stands %q, expected %q", why, test.want)
			}
			if why == "" {
				return
			}
			r.refuseDowngrade(v, why)
			s := status.Compute(&v.Snapshot, plan.Next(v.Observation), nil)
			if ready := meta.FindStatusCondition(s.Conditions, api.ConditionReady); ready.Reason != test.ready {
				t.Errorf("Ready is %s: %s, expected %s", ready.Reason, ready.Message, test.ready)
			}
			update := meta.FindStatusCondition(s.Conditions, api.ConditionUpdateAvailable)
			if (update == nil) != (test.update == "") || update != nil && update.Reason != test.update {
				t.Errorf("UpdateAvailable is %+v, expected %s", update, test.update)
			}
		})
	}
}
