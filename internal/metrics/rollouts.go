package metrics

import (
	"maps"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/chartwright/chartwright/internal/rollout"
)

// rollouts tells how far the rollouts of the kinds' charts are, when it is asked.
type rollouts struct {
	mu     sync.Mutex
	counts map[string]func() map[rollout.Standing]int
}

var lines = &rollouts{counts: map[string]func() map[rollout.Standing]int{}}

var rolloutSize = prometheus.NewDesc("chartwright_rollout_resources", "Custom resources by kind and where they stand in the rollout of the kind's chart.", []string{"kind", "standing"}, nil)

// ListRollout says where to ask how the custom resources of a kind stand. The
// last caller counts.
func ListRollout(kind string, counts func() map[rollout.Standing]int) {
	lines.mu.Lock()
	defer lines.mu.Unlock()
	lines.counts[kind] = counts
}

// Describe names what Collect sends.
func (r *rollouts) Describe(to chan<- *prometheus.Desc) { to <- rolloutSize }

// Collect tells of every standing, so that one of which there are none is 0.
func (r *rollouts) Collect(to chan<- prometheus.Metric) {
	r.mu.Lock()
	counts := maps.Clone(r.counts)
	r.mu.Unlock()
	for kind, count := range counts {
		standings := count()
		for _, standing := range []rollout.Standing{rollout.Done, rollout.Moving, rollout.Failed, rollout.Waiting, rollout.Aside} {
			to <- prometheus.MustNewConstMetric(rolloutSize, prometheus.GaugeValue, float64(standings[standing]), kind, string(standing))
		}
	}
}
