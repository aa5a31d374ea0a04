package metrics

import (
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// watched counts the objects of releases that are watched, when it is asked.
type watched struct {
	count     atomic.Pointer[func() map[string]int]
	unwatched atomic.Pointer[func() []string]
}

var objects = &watched{}

var (
	watchedKinds   = prometheus.NewDesc("chartwright_watched_kinds", "Kinds of objects of releases that are watched.", nil, nil)
	watchedObjects = prometheus.NewDesc("chartwright_watched_objects", "Objects of releases that are known, by their kind.", []string{"dependent"}, nil)
	unwatched      = prometheus.NewDesc("chartwright_unwatched_kind", "Always 1; releases have objects of the kind, and the operator cannot watch them.", []string{"dependent"}, nil)
)

// CountObjects says where the numbers come from: for each watched kind, how
// many objects of it are known. The last caller counts.
func CountObjects(count func() map[string]int) { objects.count.Store(&count) }

// ListUnwatched says where to ask for the kinds of objects that cannot be watched.
// The last caller counts.
func ListUnwatched(list func() []string) { objects.unwatched.Store(&list) }

// Describe names what Collect sends.
func (w *watched) Describe(to chan<- *prometheus.Desc) {
	to <- watchedKinds
	to <- watchedObjects
	to <- unwatched
}

// Collect counts.
func (w *watched) Collect(to chan<- prometheus.Metric) {
	if list := w.unwatched.Load(); list != nil {
		// A kind may be listed for each of several namespaces.
		kinds := (*list)()
		slices.Sort(kinds)
		for _, kind := range slices.Compact(kinds) {
			to <- prometheus.MustNewConstMetric(unwatched, prometheus.GaugeValue, 1, kind)
		}
	}
	count := w.count.Load()
	if count == nil {
		return
	}
	counts := (*count)()
	to <- prometheus.MustNewConstMetric(watchedKinds, prometheus.GaugeValue, float64(len(counts)))
	for kind, n := range counts {
		to <- prometheus.MustNewConstMetric(watchedObjects, prometheus.GaugeValue, float64(n), kind)
	}
}
