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

// rolloutOutput is the output of rollout status with -o json and yaml.
type rolloutOutput struct {
	// Kind is the name in RBAC rules: podsets.app.example.com.
	Kind string `json:"kind"`
	// Namespace is empty for all namespaces.
	Namespace string `json:"namespace,omitempty"`
	// Paused reports whether the CRD pauses the rollout. It is nil if the CRD cannot be
	// read.
	Paused *bool `json:"paused,omitempty"`
	// To is the chart version that custom resources wait for.
	To    string `json:"to,omitempty"`
	Total int    `json:"total"`
	// Phases counts all custom resources, Versions those of each chart version.
	Phases   phases          `json:"phases"`
	Versions []versionPhases `json:"versions"`
	// Resources are sorted by namespace and name.
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

// versionPhases counts the custom resources with one chart version. The version is
// empty for those without a release.
type versionPhases struct {
	Version string `json:"version"`
	Total   int    `json:"total"`
	phases
}

// rolloutMember is one custom resource.
type rolloutMember struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Version is the chart version of the newest revision.
	Version string `json:"version,omitempty"`
	Phase   string `json:"phase"`
	// To is the next chart version, Reason why it is not deployed yet, and Place the
	// position in the queue.
	To     string `json:"to,omitempty"`
	Reason string `json:"reason,omitempty"`
	Place  int64  `json:"place,omitempty"`
	// Message is that of the condition that determines the phase.
	Message string `json:"message,omitempty"`
}

// memberOf returns the phase of a custom resource in a rollout. Paused and held custom
// resources take no part in it. A waiting one can be ready at the same time and counts
// as waiting.
func memberOf(cr *unstructured.Unstructured) rolloutMember {
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
	case update != nil && isWaiting(update.Reason):
		m.Phase, m.Message = phaseWaiting, update.Message
	case ready == nil:
	default:
		switch v := settled(status); v.outcome {
		case outcomeDone:
			m.Phase = phaseReady
		case outcomeFailed:
			m.Phase, m.Message = phaseFailed, v.message
		default:
			m.Message = ready.Message
		}
	}
	return m
}

// failedOtherVersion reports whether the revision that failed before the rollback had
// another chart version, which means that the upgrade to the new chart failed.
func failedOtherVersion(status api.Status) bool {
	if status.Rollback == nil || status.Release == nil {
		return false
	}
	return slices.ContainsFunc(status.History, func(entry api.HistoryEntry) bool {
		return entry.Revision == status.Rollback.From && entry.ChartVersion != status.Release.ChartVersion
	})
}

// isWaiting reports whether the rollout or an approval delays the new chart. For any other reason of
// UpdateAvailable, a user must act first.
func isWaiting(reason string) bool {
	return slices.Contains([]string{api.ReasonWaiting, api.ReasonRolloutStopped, api.ReasonRolloutPaused, api.ReasonApprovalRequired}, reason)
}

// summarize counts the custom resources of a kind.
func summarize(members []rolloutMember) rolloutOutput {
	r := rolloutOutput{Total: len(members), Resources: slices.Clone(members), Versions: []versionPhases{}}
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

// waitsFor reports whether a custom resource waits for this reason.
func (r rolloutOutput) waitsFor(reason string) bool {
	return slices.ContainsFunc(r.Resources, func(m rolloutMember) bool { return m.Phase == phaseWaiting && m.Reason == reason })
}

// paused reports whether the rollout is paused, according to the CRD or to a waiting
// custom resource.
func (r rolloutOutput) paused() bool {
	return r.Paused != nil && *r.Paused || r.waitsFor(api.ReasonRolloutPaused)
}

// headline summarizes the rollout in one line.
func (r rolloutOutput) headline() string {
	switch {
	case r.Total == 0:
		return "No " + r.Kind + " found."
	case r.Phases.Waiting == 0 && r.paused():
		return fmt.Sprintf("The rollout of %s is paused; no custom resource is waiting.", r.Kind)
	case r.Phases.Waiting == 0:
		return fmt.Sprintf("No rollout of %s in progress; no custom resource is waiting.", r.Kind)
	case r.waitsFor(api.ReasonRolloutStopped):
		return fmt.Sprintf("The rollout of %s to %s is stopped because an upgrade failed; %d waiting.", r.Kind, r.To, r.Phases.Waiting)
	case r.paused():
		return fmt.Sprintf("The rollout of %s to %s is paused; %d waiting.", r.Kind, r.To, r.Phases.Waiting)
	default:
		return fmt.Sprintf("Rollout of %s to %s in progress; %d waiting.", r.Kind, r.To, r.Phases.Waiting)
	}
}
