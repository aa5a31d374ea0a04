package reconcile

import (
	"testing"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/watches"
)

// Only numbers: Helm in the entry upgrades the releases. The mode Integer is for releases that have
// integers, and the default changes no release by itself.
func TestChartDigest_Numbers(t *testing.T) {
	digest := func(w watches.Watch) string {
		return (&Reconciler{Kind: catalog.Kind{Watch: w, Chart: &chart.Chart{Digest: "chart"}}}).chartDigest()
	}
	for _, same := range []watches.Watch{{}, {OperatorSDK: true}, {Numbers: watches.NumbersInteger}} {
		if got := digest(same); got != "chart" {
			t.Errorf("%q: the digest is %s, so that all releases are upgraded", same.Numbers, got)
		}
	}
	if digest(watches.Watch{Numbers: watches.NumbersHelm}) == "chart" {
		t.Error("numbers: Helm upgrades no release")
	}
}
