package metrics

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestMetrics_CountReleasesByKind checks the sums of the newest states, without deleted
// custom resources.
func TestMetrics_CountReleasesByKind(t *testing.T) {
	m := New(nil, Sources{})
	m.SetRelease("A", "1", Release{Status: "deployed"})
	m.SetRelease("A", "2", Release{Status: "failed", NotReady: true})
	m.SetRelease("A", "2", Release{Status: "deployed", NotReady: true, Held: true})
	m.SetRelease("A", "3", Release{NotReady: true, Paused: true})
	m.SetRelease("B", "4", Release{Status: "failed", NotReady: true, DriftFight: true})
	m.SetRelease("B", "5", Release{Status: "deployed"})
	m.DeleteRelease("B", "5")
	m.DeleteRelease("C", "6")
	expected := `
# HELP chartwright_releases Releases, by kind and Helm status of the newest revision.
# TYPE chartwright_releases gauge
chartwright_releases{kind="A",status="deployed"} 2
chartwright_releases{kind="B",status="failed"} 1
# HELP chartwright_releases_held Releases that are held at an earlier revision, by kind.
# TYPE chartwright_releases_held gauge
chartwright_releases_held{kind="A"} 1
chartwright_releases_held{kind="B"} 0
# HELP chartwright_releases_in_drift_fight Custom resources with a managed resource that another client changes repeatedly, by kind.
# TYPE chartwright_releases_in_drift_fight gauge
chartwright_releases_in_drift_fight{kind="A"} 0
chartwright_releases_in_drift_fight{kind="B"} 1
# HELP chartwright_releases_not_ready Custom resources that are not Ready, by kind.
# TYPE chartwright_releases_not_ready gauge
chartwright_releases_not_ready{kind="A"} 2
chartwright_releases_not_ready{kind="B"} 1
# HELP chartwright_releases_paused Custom resources that are paused, by kind.
# TYPE chartwright_releases_paused gauge
chartwright_releases_paused{kind="A"} 1
chartwright_releases_paused{kind="B"} 0
`
	if err := testutil.CollectAndCompare(m, strings.NewReader(expected)); err != nil {
		t.Error(err)
	}
}

func TestMetrics_CountWatchedObjectsAtScrape(t *testing.T) {
	sources := Sources{
		Watched: func() map[string]int { return map[string]int{"Service": 3, "Deployment.apps": 0} },
		// A kind may be unwatched in several namespaces.
		Unwatched: func() []string {
			return []string{"Lease.coordination.k8s.io", "Job.batch", "Lease.coordination.k8s.io"}
		},
	}
	expected := `
# HELP chartwright_unwatched_kind Always 1 for a kind of managed resources that the operator cannot watch.
# TYPE chartwright_unwatched_kind gauge
chartwright_unwatched_kind{dependent="Job.batch"} 1
chartwright_unwatched_kind{dependent="Lease.coordination.k8s.io"} 1
# HELP chartwright_watched_kinds Kinds of managed resources that are watched.
# TYPE chartwright_watched_kinds gauge
chartwright_watched_kinds 2
# HELP chartwright_watched_objects Known managed resources, by their kind.
# TYPE chartwright_watched_objects gauge
chartwright_watched_objects{dependent="Deployment.apps"} 0
chartwright_watched_objects{dependent="Service"} 3
`
	if err := testutil.CollectAndCompare(New(nil, sources), strings.NewReader(expected)); err != nil {
		t.Error(err)
	}
}

func TestMetrics_ListKindsAtScrape(t *testing.T) {
	sources := Sources{Kinds: func() []Kind {
		return []Kind{
			{Kind: "A", State: "Serving", RulesMissing: 2}, {Kind: "A", Folder: "/charts/a", State: KindBroken}, {Folder: "/charts/b", State: KindBroken},
		}
	}}
	expected := `
# HELP chartwright_kind_rules_missing RBAC rules for the kind that are missing from the operator's role.
# TYPE chartwright_kind_rules_missing gauge
chartwright_kind_rules_missing{kind="A"} 2
# HELP chartwright_kind_state Always 1; the label state is the state of the kind.
# TYPE chartwright_kind_state gauge
chartwright_kind_state{folder="",kind="A",state="Serving"} 1
chartwright_kind_state{folder="/charts/a",kind="A",state="Broken"} 1
chartwright_kind_state{folder="/charts/b",kind="",state="Broken"} 1
`
	collector := New(nil, sources)
	for range 2 {
		if err := testutil.CollectAndCompare(collector, strings.NewReader(expected)); err != nil {
			t.Error(err)
		}
	}
}

// TestMetrics_FollowPrometheusConventions checks names, units and help texts.
func TestMetrics_FollowPrometheusConventions(t *testing.T) {
	registry := prometheus.NewRegistry()
	countEach(New(registry, Sources{}))
	problems, err := testutil.GatherAndLint(registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// countEach increments each counter once.
func countEach(m *Metrics) {
	m.ActionDone("A", "Install", OutcomeDone, 0)
	m.DriftCorrected("A", "Service")
	m.DriftDetected("A", "Service")
	m.ReconcileDone("A", ReconcileIdle)
	m.ChartPulled("a", "new")
	m.SetChartKind("a", true)
}
