package metrics

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/chartwright/chartwright/internal/rollout"
)

// TestDocsNameEveryMetric, and none that there is not.
func TestDocsNameEveryMetric(t *testing.T) {
	text, err := os.ReadFile("../../docs/observing.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := regexp.MustCompile("chartwright_[a-z_]+").FindAllString(string(text), -1)
	slices.Sort(documented)

	ActionDone("A", "Install", OutcomeDone, 0)
	Repaired("A", "Service")
	DriftFound("A", "Service")
	PassDone("A", PassIdle)
	Observe("A", "1", Release{Status: "deployed"})
	CountObjects(func() map[string]int { return map[string]int{"Service": 3} })
	ListUnwatched(func() []string { return []string{"Service"} })
	ListKinds(func() []Kind { return []Kind{{Kind: "A", State: "Serving"}} })
	ListRollout("A", func() map[rollout.Standing]int { return map[rollout.Standing]int{rollout.Waiting: 2} })
	families, err := ctrlmetrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, family := range families {
		if strings.HasPrefix(family.GetName(), "chartwright_") {
			found = append(found, family.GetName())
		}
	}
	slices.Sort(found)
	if !slices.Equal(slices.Compact(documented), found) {
		t.Errorf("the docs name\n%v\nand there are\n%v", documented, found)
	}
}
