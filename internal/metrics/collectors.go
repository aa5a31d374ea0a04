package metrics

import (
	"maps"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/rollout"
)

// Sources are functions that return the values of gauges. They are called at each scrape,
// and may be nil.
type Sources struct {
	// Kinds lists the operator's kinds.
	Kinds func() []Kind
	// Watched returns the number of known managed resources for each watched kind.
	Watched func() map[string]int
	// Unwatched lists the kinds of managed resources that cannot be watched. A kind may
	// occur more than once.
	Unwatched func() []string
}

// Kind is the state of one kind of the operator.
type Kind struct {
	// Kind is its name, empty for a broken folder whose kind is unknown. Folder is the
	// chart folder of a broken kind of --charts-dir.
	Kind, Folder string
	// State is one of the states of package readiness, or KindBroken.
	State string
	// RulesMissing counts the rules that the operator's role lacks for the kind.
	RulesMissing int
}

// KindBroken is the state of a folder of --charts-dir that cannot be served.
const KindBroken = "Broken"

var (
	kindState      = prometheus.NewDesc("chartwright_kind_state", "Always 1; the label state is the state of the kind.", []string{"kind", "folder", "state"}, nil)
	rulesMissing   = prometheus.NewDesc("chartwright_kind_rules_missing", "RBAC rules for the kind that are missing from the operator's role.", []string{"kind"}, nil)
	watchedKinds   = prometheus.NewDesc("chartwright_watched_kinds", "Kinds of managed resources that are watched.", nil, nil)
	watchedObjects = prometheus.NewDesc("chartwright_watched_objects", "Known managed resources, by their kind.", []string{"dependent"}, nil)
	unwatchedKind  = prometheus.NewDesc("chartwright_unwatched_kind", "Always 1 for a kind of managed resources that the operator cannot watch.", []string{"dependent"}, nil)
	rolloutSize    = prometheus.NewDesc("chartwright_rollout_resources", "Custom resources, by kind and position in the rollout of the kind's chart.", []string{"kind", "position"}, nil)

	byStatus = prometheus.NewDesc("chartwright_releases", "Releases, by kind and Helm status of the newest revision.", []string{"kind", "status"}, nil)
	notReady = prometheus.NewDesc("chartwright_releases_not_ready", "Custom resources that are not Ready, by kind.", []string{"kind"}, nil)
	held     = prometheus.NewDesc("chartwright_releases_held", "Releases that are held at an earlier revision, by kind.", []string{"kind"}, nil)
	paused   = prometheus.NewDesc("chartwright_releases_paused", "Custom resources that are paused, by kind.", []string{"kind"}, nil)
	fights   = prometheus.NewDesc("chartwright_releases_in_drift_fight", "Custom resources with a managed resource that another client changes repeatedly, by kind.", []string{"kind"}, nil)
)

// Release is the state of one custom resource and its release, as the metrics count it.
type Release struct {
	// Status is Helm's status of the newest revision, empty without a revision.
	Status   string
	NotReady bool
	Held     bool
	Paused   bool
	// DriftFight: another client changes a managed resource repeatedly.
	DriftFight bool
}

// collector computes gauges at each scrape.
type collector struct {
	sources Sources

	mu sync.Mutex
	// releases are the custom resources by kind.
	releases map[string]map[types.UID]Release
	// rollouts count the custom resources in the rollout of each kind's chart.
	rollouts map[string]func() map[rollout.Position]int
}

// SetRelease replaces the counted state of a custom resource.
func (c *collector) SetRelease(kind string, uid types.UID, release Release) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.releases[kind] == nil {
		c.releases[kind] = map[types.UID]Release{}
	}
	c.releases[kind][uid] = release
}

// DeleteRelease stops counting a custom resource.
func (c *collector) DeleteRelease(kind string, uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.releases[kind], uid)
}

// DeleteKind stops counting the custom resources of a kind and its rollout.
func (c *collector) DeleteKind(kind string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.releases, kind)
	delete(c.rollouts, kind)
}

// AddRollout adds the rollout of a kind's chart. counts is called at each scrape.
func (c *collector) AddRollout(kind string, counts func() map[rollout.Position]int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rollouts[kind] = counts
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		kindState, rulesMissing, watchedKinds, watchedObjects, unwatchedKind, rolloutSize, byStatus, notReady, held, paused, fights,
	} {
		to <- desc
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	c.sources.collect(to)
	c.collectReleases(to)
	c.mu.Lock()
	rollouts := maps.Clone(c.rollouts)
	c.mu.Unlock()
	for kind, counts := range rollouts {
		positions := counts()
		// Report 0 for positions without a custom resource.
		for _, position := range []rollout.Position{rollout.Done, rollout.Moving, rollout.Failed, rollout.Waiting, rollout.Skipped} {
			to <- gauge(rolloutSize, positions[position], kind, string(position))
		}
	}
}

func (s Sources) collect(to chan<- prometheus.Metric) {
	if s.Kinds != nil {
		for _, kind := range s.Kinds() {
			to <- gauge(kindState, 1, kind.Kind, kind.Folder, kind.State)
			// Broken kinds may share a name, and duplicate series are invalid.
			if kind.State != KindBroken {
				to <- gauge(rulesMissing, kind.RulesMissing, kind.Kind)
			}
		}
	}
	if s.Unwatched != nil {
		for _, kind := range slices.Compact(slices.Sorted(slices.Values(s.Unwatched()))) {
			to <- gauge(unwatchedKind, 1, kind)
		}
	}
	if s.Watched != nil {
		counts := s.Watched()
		to <- gauge(watchedKinds, len(counts))
		for kind, n := range counts {
			to <- gauge(watchedObjects, n, kind)
		}
	}
}

func (c *collector) collectReleases(to chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for kind, all := range c.releases {
		statuses := map[string]int{}
		counts := map[*prometheus.Desc]int{notReady: 0, held: 0, paused: 0, fights: 0}
		for _, one := range all {
			if one.Status != "" {
				statuses[one.Status]++
			}
			for desc, holds := range map[*prometheus.Desc]bool{notReady: one.NotReady, held: one.Held, paused: one.Paused, fights: one.DriftFight} {
				if holds {
					counts[desc]++
				}
			}
		}
		for status, n := range statuses {
			to <- gauge(byStatus, n, kind, status)
		}
		for desc, n := range counts {
			to <- gauge(desc, n, kind)
		}
	}
}

func gauge(desc *prometheus.Desc, value int, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), labels...)
}
