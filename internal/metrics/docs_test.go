package metrics

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/chartwright/chartwright/internal/rollout"
)

// TestDocsNameEveryMetric expects docs/guides/monitoring.md to name every metric, and no other.
func TestDocsNameEveryMetric(t *testing.T) {
	text, err := os.ReadFile("../../docs/guides/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := regexp.MustCompile("chartwright_[a-z_]+").FindAllString(string(text), -1)
	slices.Sort(documented)

	registry := prometheus.NewRegistry()
	m := New(registry, Sources{
		Kinds:     func() []Kind { return []Kind{{Kind: "A", State: "Serving"}} },
		Watched:   func() map[string]int { return map[string]int{"Service": 3} },
		Unwatched: func() []string { return []string{"Service"} },
	})
	countEach(m)
	m.SetRelease("A", "1", Release{Status: "deployed"})
	m.AddRollout("A", func() map[rollout.Position]int { return map[rollout.Position]int{rollout.Waiting: 2} })
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, family := range families {
		found = append(found, family.GetName())
	}
	slices.Sort(found)
	if !slices.Equal(slices.Compact(documented), found) {
		t.Errorf("docs/guides/monitoring.md names\n%v\nwant\n%v", documented, found)
	}
}
