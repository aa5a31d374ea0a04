package metrics

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// Kind is how a kind of the operator is.
type Kind struct {
	// Kind is its name, empty where it is broken and does not say so; Folder is
	// what it was made of, where that is one of --charts-dir.
	Kind, Folder string
	// State is one word, see package operator and KindBroken.
	State string
	// RulesMissing counts the rules that the operator's role lacks for it.
	RulesMissing int
}

// KindBroken is the state of a kind of which nobody knows what it needs.
const KindBroken = "Broken"

// kinds tells how the operator's kinds are, when it is asked.
type kinds struct {
	list atomic.Pointer[func() []Kind]
}

var served = &kinds{}

var (
	kindState    = prometheus.NewDesc("chartwright_kind_state", "Always 1; the label state tells how the kind is.", []string{"kind", "folder", "state"}, nil)
	rulesMissing = prometheus.NewDesc("chartwright_kind_rules_missing", "Rules that the operator's role lacks to serve the kind.", []string{"kind"}, nil)
)

// ListKinds says where to ask how the kinds are. The last caller counts.
func ListKinds(list func() []Kind) { served.list.Store(&list) }

// Describe names what Collect sends.
func (k *kinds) Describe(to chan<- *prometheus.Desc) {
	to <- kindState
	to <- rulesMissing
}

// Collect tells.
func (k *kinds) Collect(to chan<- prometheus.Metric) {
	list := k.list.Load()
	if list == nil {
		return
	}
	for _, kind := range (*list)() {
		to <- prometheus.MustNewConstMetric(kindState, prometheus.GaugeValue, 1, kind.Kind, kind.Folder, kind.State)
		// Of those that are broken two may have the same name.
		if kind.State != KindBroken {
			to <- prometheus.MustNewConstMetric(rulesMissing, prometheus.GaugeValue, float64(kind.RulesMissing), kind.Kind)
		}
	}
}
