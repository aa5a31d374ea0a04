package metrics

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// watched counts the objects of releases that are watched, when it is asked.
type watched struct {
	count atomic.Pointer[func() map[string]int]
}

var objects = &watched{}

var (
	watchedKinds   = prometheus.NewDesc("chartwright_watched_kinds", "Kinds of objects of releases that are watched.", nil, nil)
	watchedObjects = prometheus.NewDesc("chartwright_watched_objects", "Objects of releases that are known, by their kind.", []string{"dependent"}, nil)
)

// CountObjects says where the numbers come from: for each watched kind, how
// many objects of it are known. The last caller counts.
func CountObjects(count func() map[string]int) { objects.count.Store(&count) }

// Describe names what Collect sends.
func (w *watched) Describe(to chan<- *prometheus.Desc) {
	to <- watchedKinds
	to <- watchedObjects
}

// Collect counts.
func (w *watched) Collect(to chan<- prometheus.Metric) {
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
