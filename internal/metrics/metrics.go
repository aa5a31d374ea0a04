package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/rollout"
)

// Outcomes of an action.
const (
	OutcomeDone   = "done"
	OutcomeFailed = "failed"
	// OutcomeStale: the action was aborted because of a concurrent change.
	OutcomeStale = "stale"
	// OutcomeInterrupted: the operator was stopped.
	OutcomeInterrupted = "interrupted"
)

// Outcomes of a reconcile.
const (
	// ReconcileIdle: nothing was to be done, and nothing was.
	ReconcileIdle = "idle"
	// ReconcileActed: a step was taken, or the status changed.
	ReconcileActed = "acted"
)

// Metrics holds the metrics of one operator.
type Metrics struct {
	actions, corrected, drifted, reconciles *prometheus.CounterVec
	durations                               *prometheus.HistogramVec
	running, waiting                        prometheus.Gauge

	*collector
}

// New creates the metrics and registers them. With a nil registerer they are
// counted and not served. Like promauto it panics if they are registered already.
func New(registerer prometheus.Registerer, sources Sources) *Metrics {
	create := promauto.With(registerer)
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return create.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &Metrics{
		actions: counter("chartwright_actions_total", "Actions on releases that have ended, by kind, action and outcome.", "kind", "action", "outcome"),
		durations: create.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "chartwright_action_duration_seconds",
			Help:    "How long actions on releases took, waiting for a slot not included.",
			Buckets: prometheus.ExponentialBuckets(0.01, 2.5, 12),
		}, []string{"kind", "action"}),
		running:    create.NewGauge(prometheus.GaugeOpts{Name: "chartwright_actions_running", Help: "Actions on releases that are under way."}),
		waiting:    create.NewGauge(prometheus.GaugeOpts{Name: "chartwright_actions_waiting", Help: "Actions on releases that wait for a slot."}),
		corrected:  counter("chartwright_drift_repaired_total", "Damaged objects that were brought back, by kind and the object's kind.", "kind", "dependent"),
		drifted:    counter("chartwright_drift_found_total", "Damaged objects that were found, by kind and the object's kind.", "kind", "dependent"),
		reconciles: counter("chartwright_reconciles_total", "Passes over custom resources, by kind and whether there was anything to do.", "kind", "outcome"),
		collector:  &collector{sources: sources, releases: map[string]map[types.UID]Release{}, rollouts: map[string]func() map[rollout.Position]int{}},
	}
	info := api.BuildInfo()
	create.NewGaugeVec(prometheus.GaugeOpts{
		Name: "chartwright_build_info",
		Help: "Always 1; the labels tell the build.",
	}, []string{"version", "commit", "go", "helm"}).WithLabelValues(info.Version, info.Commit, info.Go, info.Helm).Set(1)
	if registerer != nil {
		registerer.MustRegister(m.collector)
	}
	return m
}

// ActionWaiting counts an action that waits for a slot.
func (m *Metrics) ActionWaiting() { m.waiting.Inc() }

// ActionBegan counts an action that has got its slot, or gave up waiting for it.
func (m *Metrics) ActionBegan(got bool) {
	m.waiting.Dec()
	if got {
		m.running.Inc()
	}
}

// ActionEnded counts an action that has given its slot back.
func (m *Metrics) ActionEnded() { m.running.Dec() }

// ActionDone counts how an action ended.
func (m *Metrics) ActionDone(kind, action, outcome string, took time.Duration) {
	m.actions.WithLabelValues(kind, action, outcome).Inc()
	m.durations.WithLabelValues(kind, action).Observe(took.Seconds())
}

// ReconcileDone counts a reconcile of a custom resource of a kind.
func (m *Metrics) ReconcileDone(kind, outcome string) {
	m.reconciles.WithLabelValues(kind, outcome).Inc()
}

// DriftDetected counts a managed object that has drifted.
func (m *Metrics) DriftDetected(kind, dependent string) {
	m.drifted.WithLabelValues(kind, dependent).Inc()
}

// DriftCorrected counts a managed object whose drift was corrected.
func (m *Metrics) DriftCorrected(kind, dependent string) {
	m.corrected.WithLabelValues(kind, dependent).Inc()
}
