package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// Release is what is counted of one custom resource.
type Release struct {
	// Status is Helm's word for the newest revision, empty where there is none.
	Status   string
	NotReady bool
	Held     bool
	Paused   bool
	// Fought: somebody damages an object of it again and again.
	Fought bool
}

// releases counts custom resources by their kind, and never by their name: what
// Prometheus keeps must not grow with them.
type releases struct {
	mu     sync.Mutex
	byKind map[string]map[types.UID]Release
}

var known = &releases{byKind: map[string]map[types.UID]Release{}}

// Observe tells how a custom resource of a kind is now.
func Observe(kind string, uid types.UID, r Release) {
	known.mu.Lock()
	defer known.mu.Unlock()
	if known.byKind[kind] == nil {
		known.byKind[kind] = map[types.UID]Release{}
	}
	known.byKind[kind][uid] = r
}

// Forget tells that a custom resource is gone.
func Forget(kind string, uid types.UID) {
	known.mu.Lock()
	defer known.mu.Unlock()
	delete(known.byKind[kind], uid)
}

var (
	byStatus = prometheus.NewDesc("chartwright_releases", "Releases by kind and Helm's status of the newest revision.", []string{"kind", "status"}, nil)
	notReady = prometheus.NewDesc("chartwright_releases_not_ready", "Custom resources that are not Ready, by kind.", []string{"kind"}, nil)
	held     = prometheus.NewDesc("chartwright_releases_held", "Releases that are held at an earlier revision, by kind.", []string{"kind"}, nil)
	paused   = prometheus.NewDesc("chartwright_releases_paused", "Custom resources that are paused, by kind.", []string{"kind"}, nil)
	fought   = prometheus.NewDesc("chartwright_releases_in_drift_fight", "Custom resources of which somebody damages an object again and again, by kind.", []string{"kind"}, nil)
)

// Describe names what Collect sends.
func (r *releases) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{byStatus, notReady, held, paused, fought} {
		to <- d
	}
}

// Collect counts.
func (r *releases) Collect(to chan<- prometheus.Metric) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for kind, all := range r.byKind {
		statuses := map[string]int{}
		counts := map[*prometheus.Desc]int{notReady: 0, held: 0, paused: 0, fought: 0}
		for _, one := range all {
			if one.Status != "" {
				statuses[one.Status]++
			}
			for desc, holds := range map[*prometheus.Desc]bool{notReady: one.NotReady, held: one.Held, paused: one.Paused, fought: one.Fought} {
				if holds {
					counts[desc]++
				}
			}
		}
		for status, n := range statuses {
			to <- prometheus.MustNewConstMetric(byStatus, prometheus.GaugeValue, float64(n), kind, status)
		}
		for desc, n := range counts {
			to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(n), kind)
		}
	}
}
