package chartkind

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
)

// Conditions of a ChartKind.
const (
	// ConditionPulled is True if the last check found a chart and read it.
	ConditionPulled = "Pulled"
	// ConditionVerified is True if the digest and, with --chart-keyring, the provenance of
	// the chart are as required.
	ConditionVerified = "Verified"
	// ConditionCRDEstablished is True if the API server serves the kind, and its CRD is that
	// of the chart or is managed by someone else.
	ConditionCRDEstablished = "CRDEstablished"
	// ConditionPermissionsComplete is True if the operator's role has all rules for the
	// kind. Otherwise, the message has the rules to add.
	ConditionPermissionsComplete = "PermissionsComplete"
	// ConditionReady is True if the operator serves the kind with the chart of the spec.
	ConditionReady = "Ready"
)

// Types are all conditions, in the order of the status.
var Types = []string{ConditionPulled, ConditionVerified, ConditionCRDEstablished, ConditionPermissionsComplete, ConditionReady}

// Reasons of the conditions.
const (
	ReasonPulled     = "Pulled"
	ReasonPulling    = "Pulling"
	ReasonPullFailed = "PullFailed"

	ReasonDigestMatches      = "DigestMatches"
	ReasonProvenanceVerified = "ProvenanceVerified"
	ReasonNotRequired        = "NotRequired"
	ReasonDigestMismatch     = "DigestMismatch"
	ReasonProvenanceInvalid  = "ProvenanceInvalid"

	ReasonEstablished  = "Established"
	ReasonCRDMissing   = "CRDMissing"
	ReasonCRDForeign   = "CRDForeign"
	ReasonCRDBreaks    = "CRDBreaksCustomResources"
	ReasonCRDFailed    = "CRDNotInstalled"
	ReasonComplete     = "Complete"
	ReasonRulesMissing = "RulesMissing"
	ReasonUnknown      = "Unknown"
	ReasonServing      = "Serving"
	ReasonStarting     = "Starting"
	ReasonNotServed    = "NotServed"
	ReasonInvalidSpec  = "InvalidSpec"
	ReasonNotAllowed   = "NotAllowed"
	ReasonInvalidChart = "InvalidChart"
	ReasonKindConflict = "KindConflict"
	ReasonTerminating  = "Terminating"
)

// Finding is what is known about one condition. The zero Finding is Unknown.
type Finding struct {
	Status  metav1.ConditionStatus
	Reason  string
	Message string
}

// True returns a finding that a condition holds.
func True(reason, message string) Finding { return Finding{metav1.ConditionTrue, reason, message} }

// False returns a finding that a condition does not hold.
func False(reason, message string) Finding { return Finding{metav1.ConditionFalse, reason, message} }

// Undecided returns a finding that it is not known whether a condition holds.
func Undecided(reason, message string) Finding {
	return Finding{metav1.ConditionUnknown, reason, message}
}

// Facts are what the operator knows about a ChartKind.
type Facts struct {
	// Refused is why the spec cannot be served, with ReasonInvalidSpec or ReasonNotAllowed.
	Refused Finding
	// Pulled and Verified are the results of the last check for a chart.
	Pulled, Verified Finding
	// Chart is the chart that is served, nil if none is.
	Chart *ServedChart
	// Current: the served chart and entry are those of the spec.
	Current bool
	// Invalid is why the chart that was pulled last cannot be served. InvalidReason is
	// ReasonNotAllowed or, by default, ReasonInvalidChart.
	Invalid, InvalidReason string
	// Conflict is who serves the kind instead.
	Conflict string
	// CRD and Permissions are the findings about CRD and rules.
	CRD, Permissions Finding
	// RulesAlwaysNeeded: each release of the kind needs one of the missing rules.
	RulesAlwaysNeeded bool
	// Serving is whether the custom resources of the kind are watched.
	Serving Finding

	// Deleted: the ChartKind is being deleted. Remaining are its custom resources, and
	// Uncounted is why they are not counted.
	Deleted   bool
	Remaining int
	Uncounted string
}

// Ready decides whether the ChartKind is ready. The first reason against it counts.
func (f Facts) Ready() Finding {
	switch {
	case f.Deleted:
		return False(ReasonTerminating, f.terminating()+"; to delete the ChartKind and keep the custom resources, set spec.deletionPolicy: Orphan")
	case f.Refused.Reason != "":
		return False(f.Refused.Reason, f.Refused.Message+f.unchanged())
	case f.Conflict != "":
		return False(ReasonKindConflict, f.Conflict)
	case f.Invalid != "":
		return False(cmp.Or(f.InvalidReason, ReasonInvalidChart), f.Invalid+f.unchanged())
	case f.CRD.Status == metav1.ConditionFalse:
		return False(f.CRD.Reason, f.CRD.Message)
	case !f.Current && f.Pulled.Status != metav1.ConditionTrue:
		return Finding{cmp.Or(f.Pulled.Status, metav1.ConditionUnknown), cmp.Or(f.Pulled.Reason, ReasonPulling), f.Pulled.Message + f.unchanged()}
	case f.Chart == nil:
		return Undecided(ReasonPulling, "the chart is being pulled")
	case f.Serving.Status != metav1.ConditionTrue:
		return f.Serving
	case f.RulesAlwaysNeeded:
		return False(ReasonRulesMissing, "the operator's role lacks rules that every release needs; see "+ConditionPermissionsComplete)
	default:
		return True(ReasonServing, f.Chart.Name+" "+f.Chart.Version)
	}
}

// unchanged is appended to the message of a change that has no effect.
func (f Facts) unchanged() string {
	if f.Chart == nil {
		return ""
	}
	return fmt.Sprintf("; the kind is still served with %s %s", f.Chart.Name, f.Chart.Version)
}

// terminating returns what the deletion of the ChartKind waits for.
func (f Facts) terminating() string {
	switch {
	case f.Uncounted != "":
		return f.Uncounted
	case f.Serving.Status == metav1.ConditionTrue:
		return remain(f.Remaining) + ": the kind is served until they are deleted"
	default:
		alive := f
		alive.Deleted = false
		return fmt.Sprintf("%s, and the operator does not serve the kind: %s", remain(f.Remaining), alive.Ready().Message)
	}
}

func remain(n int) string {
	if n == 1 {
		return "1 custom resource remains"
	}
	return fmt.Sprintf("%d custom resources remain", n)
}

// Status returns the status of a ChartKind. Conditions that do not change keep their time.
func (f Facts) Status(before Status, generation int64, now metav1.Time) Status {
	conditions := slices.Clone(before.Conditions)
	for _, condition := range []struct {
		kind    string
		finding Finding
	}{
		{ConditionPulled, f.Pulled},
		{ConditionVerified, f.Verified},
		{ConditionCRDEstablished, f.CRD},
		{ConditionPermissionsComplete, f.Permissions},
		{ConditionReady, f.Ready()},
	} {
		finding := condition.finding
		meta.SetStatusCondition(&conditions, metav1.Condition{
			Type: condition.kind, Status: cmp.Or(finding.Status, metav1.ConditionUnknown), Reason: cmp.Or(finding.Reason, ReasonUnknown),
			Message: api.Truncate(finding.Message, maxMessage), ObservedGeneration: generation, LastTransitionTime: now,
		})
	}
	return Status{ObservedGeneration: generation, Conditions: conditions, Chart: f.Chart}
}

// maxMessage is the API server's limit for the message of a condition, in bytes.
const maxMessage = 32768

// Transition is a change of a condition.
type Transition struct {
	Type string
	Finding
}

// Transitions returns the conditions whose status or reason have changed.
func Transitions(before, now Status) []Transition {
	var changed []Transition
	for _, condition := range now.Conditions {
		was := meta.FindStatusCondition(before.Conditions, condition.Type)
		if was != nil && was.Status == condition.Status && was.Reason == condition.Reason {
			continue
		}
		changed = append(changed, Transition{condition.Type, Finding{condition.Status, condition.Reason, condition.Message}})
	}
	return changed
}
