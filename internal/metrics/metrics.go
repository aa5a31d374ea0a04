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
	// OutcomeStale: the action was aborted because the release changed concurrently.
	OutcomeStale = "stale"
	// OutcomeInterrupted: the operator stopped.
	OutcomeInterrupted = "interrupted"
)

// Outcomes of a reconcile.
const (
	// ReconcileIdle: the reconciliation changed nothing.
	ReconcileIdle = "idle"
	// ReconcileActed: the reconciliation started an action or changed the status.
	ReconcileActed = "acted"
)

// Metrics holds the metrics of one operator.
type Metrics struct {
	actions, corrected, drifted, reconciles *prometheus.CounterVec
	pulls                                   *prometheus.CounterVec
	chartKindReady                          *prometheus.GaugeVec
	durations                               *prometheus.HistogramVec
	running, waiting                        prometheus.Gauge

	*collector
}

// New creates the metrics and registers them. With a nil registerer they are counted but
// not served. Like promauto, New panics if they are registered already.
func New(registerer prometheus.Registerer, sources Sources) *Metrics {
	create := promauto.With(registerer)
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return create.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &Metrics{
		actions: counter("chartwright_actions_total", "Completed Helm actions, by kind, action and outcome.", "kind", "action", "outcome"),
		durations: create.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "chartwright_action_duration_seconds",
			Help:    "Duration of Helm actions, without the time that they wait for a slot.",
			Buckets: prometheus.ExponentialBuckets(0.01, 2.5, 12),
		}, []string{"kind", "action"}),
		running:    create.NewGauge(prometheus.GaugeOpts{Name: "chartwright_actions_running", Help: "Helm actions that are running."}),
		waiting:    create.NewGauge(prometheus.GaugeOpts{Name: "chartwright_actions_waiting", Help: "Helm actions that wait for a slot."}),
		corrected:  counter("chartwright_drift_repaired_total", "Managed resources whose drift was corrected, by kind and the kind of the managed resource.", "kind", "dependent"),
		drifted:    counter("chartwright_drift_found_total", "Managed resources found to have drifted, by kind and the kind of the managed resource.", "kind", "dependent"),
		reconciles: counter("chartwright_reconciles_total", "Reconciliations of custom resources, by kind and outcome (idle or acted).", "kind", "outcome"),
		pulls:      counter("chartwright_chart_pulls_total", "Checks for a newer chart, by ChartKind and outcome (new, unchanged, invalid or failed).", "chart_kind", "outcome"),
		chartKindReady: create.NewGaugeVec(prometheus.GaugeOpts{
			Name: "chartwright_chart_kind_ready", Help: "1 if the kind of a ChartKind is served with the chart of its spec, else 0.",
		}, []string{"chart_kind"}),
		collector: &collector{sources: sources, releases: map[string]map[types.UID]Release{}, rollouts: map[string]func() map[rollout.Position]int{}},
	}
	info := api.BuildInfo()
	create.NewGaugeVec(prometheus.GaugeOpts{
		Name: "chartwright_build_info",
		Help: "Always 1; the labels describe the build.",
	}, []string{"version", "commit", "go", "helm"}).WithLabelValues(info.Version, info.Commit, info.Go, info.Helm).Set(1)
	if registerer != nil {
		registerer.MustRegister(m.collector)
	}
	return m
}

// ActionWaiting counts an action that waits for a slot.
func (m *Metrics) ActionWaiting() { m.waiting.Inc() }

// ActionBegan counts an action that has stopped waiting for a slot. started reports whether
// it got the slot.
func (m *Metrics) ActionBegan(started bool) {
	m.waiting.Dec()
	if started {
		m.running.Inc()
	}
}

// ActionEnded counts an action that has released its slot.
func (m *Metrics) ActionEnded() { m.running.Dec() }

// ActionDone counts a completed action by its outcome.
func (m *Metrics) ActionDone(kind, action, outcome string, took time.Duration) {
	m.actions.WithLabelValues(kind, action, outcome).Inc()
	m.durations.WithLabelValues(kind, action).Observe(took.Seconds())
}

// ReconcileDone counts a reconciliation.
func (m *Metrics) ReconcileDone(kind, outcome string) {
	m.reconciles.WithLabelValues(kind, outcome).Inc()
}

// DriftDetected counts a managed resource that has drifted.
func (m *Metrics) DriftDetected(kind, dependent string) {
	m.drifted.WithLabelValues(kind, dependent).Inc()
}

// DriftCorrected counts a managed resource whose drift was corrected.
func (m *Metrics) DriftCorrected(kind, dependent string) {
	m.corrected.WithLabelValues(kind, dependent).Inc()
}

// ChartPulled counts a check for a newer chart of a ChartKind.
func (m *Metrics) ChartPulled(chartKind, outcome string) {
	m.pulls.WithLabelValues(chartKind, outcome).Inc()
}

// SetChartKind sets whether a ChartKind is ready.
func (m *Metrics) SetChartKind(chartKind string, ready bool) {
	value := 0.0
	if ready {
		value = 1
	}
	m.chartKindReady.WithLabelValues(chartKind).Set(value)
}

// DeleteChartKind deletes the metrics of a ChartKind.
func (m *Metrics) DeleteChartKind(chartKind string) {
	m.pulls.DeletePartialMatch(prometheus.Labels{"chart_kind": chartKind})
	m.chartKindReady.DeleteLabelValues(chartKind)
}
