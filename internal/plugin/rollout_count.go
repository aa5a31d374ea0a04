package plugin

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/chartwright/chartwright/internal/api"
)

// Phases of a custom resource in a rollout.
const (
	phaseReady       = "ready"
	phaseProgressing = "progressing"
	phaseFailed      = "failed"
	phaseWaiting     = "waiting"
	phaseHeld        = "held"
	phasePaused      = "paused"
)

// rollout is what "rollout KIND" prints with -o json and yaml.
type rollout struct {
	// Kind is as rules of a Role name it: podsets.app.example.com.
	Kind string `json:"kind"`
	// Namespace is empty for all of them.
	Namespace string `json:"namespace,omitempty"`
	// Paused is whether the kind's definition says so, and absent where it may
	// not be read.
	Paused *bool `json:"paused,omitempty"`
	// To is the version of the chart that some wait for.
	To    string `json:"to,omitempty"`
	Total int    `json:"total"`
	// Phases counts all, Versions those of each version of the chart.
	Phases   phases          `json:"phases"`
	Versions []versionPhases `json:"versions"`
	// Resources are all of them, by namespace and name.
	Resources []rolloutMember `json:"resources"`
}

// phases counts custom resources. Each is counted once.
type phases struct {
	Ready       int `json:"ready"`
	Progressing int `json:"progressing"`
	Failed      int `json:"failed"`
	Waiting     int `json:"waiting"`
	Held        int `json:"held"`
	Paused      int `json:"paused"`
}

// versionPhases counts those of one version of the chart, which is empty for
// those that have no release.
type versionPhases struct {
	Version string `json:"version"`
	Total   int    `json:"total"`
	phases
}

// rolloutMember is one custom resource.
type rolloutMember struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Version is that of the chart of the newest revision.
	Version string `json:"version,omitempty"`
	Phase   string `json:"phase"`
	// To is the version that is to come, Reason why it has not, and Place the
	// place in the line where it waits in one.
	To     string `json:"to,omitempty"`
	Reason string `json:"reason,omitempty"`
	Place  int64  `json:"place,omitempty"`
	// Message is that of the condition behind the phase.
	Message string `json:"message,omitempty"`
}

func (m rolloutMember) name() string {
	if m.Namespace == "" {
		return m.Name
	}
	return m.Namespace + "/" + m.Name
}

// member reads what a custom resource has to say in a rollout. The first that
// applies counts: who is paused or held has no part in it, and who waits may be
// ready all the while.
func member(cr *unstructured.Unstructured) rolloutMember {
	status := statusOf(cr)
	m := rolloutMember{Namespace: cr.GetNamespace(), Name: cr.GetName(), Phase: phaseProgressing}
	if status.Release != nil {
		m.Version = status.Release.ChartVersion
	}
	if status.Update != nil {
		m.To, m.Place = status.Update.ChartVersion, status.Update.Place
	}
	update := trueCondition(status, api.ConditionUpdateAvailable)
	if update != nil {
		m.Reason = update.Reason
	}
	ready := meta.FindStatusCondition(status.Conditions, api.ConditionReady)
	switch paused, held := trueCondition(status, api.ConditionPaused), trueCondition(status, api.ConditionHeld); {
	case paused != nil:
		m.Phase, m.Message = phasePaused, paused.Message
	case held != nil && held.Reason == api.ReasonRolledBackAfterFailure && failedOtherVersion(status):
		m.Phase, m.Message = phaseFailed, held.Message
	case held != nil:
		m.Phase, m.Message = phaseHeld, held.Message
	case update != nil && waits(update.Reason):
		m.Phase, m.Message = phaseWaiting, update.Message
	case ready == nil:
	default:
		switch v := settled(status); v.state {
		case endDone:
			m.Phase = phaseReady
		case endFailed:
			m.Phase, m.Message = phaseFailed, v.message
		default:
			m.Message = ready.Message
		}
	}
	return m
}

// failedOtherVersion tells whether the revision that failed before a hold was of
// another version of the chart, so that it is the new chart that has failed.
func failedOtherVersion(status api.Status) bool {
	if status.Rollback == nil || status.Release == nil {
		return false
	}
	return slices.ContainsFunc(status.History, func(entry api.HistoryEntry) bool {
		return entry.Revision == status.Rollback.From && entry.ChartVersion != status.Release.ChartVersion
	})
}

// waits tells the reasons for which a chart that is to come has not: by the
// others, it will not without somebody's doing.
func waits(reason string) bool {
	return slices.Contains([]string{api.ReasonWaiting, api.ReasonRolloutStopped, api.ReasonRolloutPaused}, reason)
}

// count sums up the custom resources of a kind.
func count(members []rolloutMember) rollout {
	r := rollout{Total: len(members), Resources: slices.Clone(members), Versions: []versionPhases{}}
	slices.SortFunc(r.Resources, func(a, b rolloutMember) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	if r.Resources == nil {
		r.Resources = []rolloutMember{}
	}
	to := sets.New[string]()
	for _, m := range r.Resources {
		i := slices.IndexFunc(r.Versions, func(v versionPhases) bool { return v.Version == m.Version })
		if i < 0 {
			i = len(r.Versions)
			r.Versions = append(r.Versions, versionPhases{Version: m.Version})
		}
		r.Versions[i].Total++
		r.Versions[i].add(m.Phase)
		r.Phases.add(m.Phase)
		if m.Phase == phaseWaiting && m.To != "" {
			to.Insert(m.To)
		}
	}
	slices.SortFunc(r.Versions, func(a, b versionPhases) int { return cmp.Compare(a.Version, b.Version) })
	r.To = strings.Join(sets.List(to), ", ")
	return r
}

func (p *phases) add(phase string) {
	switch phase {
	case phaseReady:
		p.Ready++
	case phaseProgressing:
		p.Progressing++
	case phaseFailed:
		p.Failed++
	case phaseWaiting:
		p.Waiting++
	case phaseHeld:
		p.Held++
	case phasePaused:
		p.Paused++
	}
}

// because reports whether some wait for a reason.
func (r rollout) because(reason string) bool {
	return slices.ContainsFunc(r.Resources, func(m rolloutMember) bool { return m.Phase == phaseWaiting && m.Reason == reason })
}

// paused reports whether the rollout is paused, by the CRD or by those that wait.
func (r rollout) paused() bool {
	return r.Paused != nil && *r.Paused || r.because(api.ReasonRolloutPaused)
}

// headline is the rollout in one line.
func (r rollout) headline() string {
	switch {
	case r.Total == 0:
		return "There are no " + r.Kind + "."
	case r.Phases.Waiting == 0 && r.paused():
		return fmt.Sprintf("The rollout of %s is paused; none waits for a chart.", r.Kind)
	case r.Phases.Waiting == 0:
		return fmt.Sprintf("No rollout of %s: none waits for a chart.", r.Kind)
	case r.because(api.ReasonRolloutStopped):
		return fmt.Sprintf("The rollout of %s to %s has stopped: one has failed, and %d wait.", r.Kind, r.To, r.Phases.Waiting)
	case r.paused():
		return fmt.Sprintf("The rollout of %s to %s is paused; %d wait.", r.Kind, r.To, r.Phases.Waiting)
	default:
		return fmt.Sprintf("Rollout of %s to %s: %d wait.", r.Kind, r.To, r.Phases.Waiting)
	}
}
