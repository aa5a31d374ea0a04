package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/chartwright/chartwright/internal/api"
)

// Outcomes of an action.
const (
	OutcomeDone   = "done"
	OutcomeFailed = "failed"
	// OutcomeStale: the action gave way to somebody else's change.
	OutcomeStale = "stale"
	// OutcomeInterrupted: the operator was stopped.
	OutcomeInterrupted = "interrupted"
)

var (
	actions = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "chartwright_actions_total",
		Help: "Actions on releases that have ended, by kind, action and outcome.",
	}, []string{"kind", "action", "outcome"})

	durations = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "chartwright_action_duration_seconds",
		Help:    "How long actions on releases took, waiting for a slot not included.",
		Buckets: prometheus.ExponentialBuckets(0.01, 2.5, 12),
	}, []string{"kind", "action"})

	running = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "chartwright_actions_running",
		Help: "Actions on releases that are under way.",
	})

	waiting = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "chartwright_actions_waiting",
		Help: "Actions on releases that wait for a slot.",
	})

	repairs = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "chartwright_drift_repaired_total",
		Help: "Damaged objects that were brought back, by kind and the object's kind.",
	}, []string{"kind", "dependent"})

	drifts = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "chartwright_drift_found_total",
		Help: "Damaged objects that were found, by kind and the object's kind.",
	}, []string{"kind", "dependent"})

	passes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "chartwright_reconciles_total",
		Help: "Passes over custom resources, by kind and whether there was anything to do.",
	}, []string{"kind", "outcome"})

	buildInfo = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "chartwright_build_info",
		Help: "Always 1; the labels tell the build.",
	}, []string{"version", "commit", "go", "helm"})
)

func init() {
	info := api.Get()
	buildInfo.WithLabelValues(info.Version, info.Commit, info.Go, info.Helm).Set(1)
	ctrlmetrics.Registry.MustRegister(actions, durations, running, waiting, repairs, drifts, passes, buildInfo, known, objects, served, lines)
}

// ActionWaiting counts an action that waits for a slot.
func ActionWaiting() { waiting.Inc() }

// ActionBegan counts one that has got its slot, or gave up waiting for it.
func ActionBegan(got bool) {
	waiting.Dec()
	if got {
		running.Inc()
	}
}

// ActionEnded counts one that has given its slot back.
func ActionEnded() { running.Dec() }

// ActionDone counts how an action ended.
func ActionDone(kind, action, outcome string, took time.Duration) {
	actions.WithLabelValues(kind, action, outcome).Inc()
	durations.WithLabelValues(kind, action).Observe(took.Seconds())
}

// DriftFound counts a damaged object of a kind.
func DriftFound(kind, dependent string) { drifts.WithLabelValues(kind, dependent).Inc() }

// Outcomes of a pass.
const (
	// PassIdle: nothing was to be done, and nothing was.
	PassIdle = "idle"
	// PassActed: a step was taken, or the status changed.
	PassActed = "acted"
)

// PassDone counts a pass over a custom resource of a kind.
func PassDone(kind, outcome string) { passes.WithLabelValues(kind, outcome).Inc() }

// Repaired counts a damaged object of a kind that was brought back.
func Repaired(kind, dependent string) { repairs.WithLabelValues(kind, dependent).Inc() }
