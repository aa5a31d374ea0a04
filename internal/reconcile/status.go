package reconcile

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/decide"
	"github.com/chartwright/chartwright/internal/records"
)

// status computes the whole status of a custom resource. The conditions that
// stand in it give the times of transitions, and those of other controllers
// are passed on.
func status(v *view, d decide.Decision, conditions []metav1.Condition) api.Status {
	ready := readiness(v, d)
	s := api.Status{
		ObservedGeneration: v.cr.GetGeneration(),
		State:              ready.reason,
		Conditions:         slices.Clone(conditions),
	}
	set := func(kind string, state metav1.ConditionStatus, reason, message string) {
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{
			Type: kind, Status: state, Reason: reason, Message: message, ObservedGeneration: s.ObservedGeneration,
		})
	}
	// Some conditions are there only while they are True.
	setWhile := func(holds bool, kind, reason, message string) {
		if holds {
			set(kind, metav1.ConditionTrue, reason, message)
		} else {
			meta.RemoveStatusCondition(&s.Conditions, kind)
		}
	}
	set(api.ConditionReady, ready.status, ready.reason, ready.message)
	setWhile(ready.reconciling, api.ConditionReconciling, ready.reason, ready.message)
	setWhile(ready.stalled, api.ConditionStalled, ready.reason, ready.message)
	drift, damage, holds := drifted(v)
	setWhile(holds, api.ConditionDrifted, drift, damage)
	if r, ok := deployed(v.history); ok {
		reason := api.ReasonUpgradeSuccessful
		if r.Revision == 1 {
			reason = api.ReasonInstallSuccessful
		}
		set(api.ConditionDeployed, metav1.ConditionTrue, reason, fmt.Sprintf("Revision %d of release %s is deployed", r.Revision, r.Release))
		s.DeployedRelease = &api.DeployedRelease{Name: r.Release}
	} else {
		set(api.ConditionDeployed, metav1.ConditionFalse, api.ReasonNotInstalled, "No revision is deployed")
	}
	if len(v.history) > 0 {
		s.Release = release(v.history[0])
	}
	for i, r := range v.history {
		if i == api.HistoryLimit {
			break
		}
		s.History = append(s.History, entry(r))
	}
	// A condition that comes back is put last, and a list that differs in its
	// order alone must not be written.
	slices.SortStableFunc(s.Conditions, func(a, b metav1.Condition) int { return order(a.Type) - order(b.Type) })
	return s
}

// summary is what Ready says, and whether Reconciling and Stalled hold.
type summary struct {
	status      metav1.ConditionStatus
	reason      string
	message     string
	reconciling bool
	stalled     bool
}

// readiness says how a custom resource is doing. A failure that lasts is told
// even while it is being tried again, or the two would take turns.
func readiness(v *view, d decide.Decision) summary {
	o := v.observation
	if f := v.failure; f != nil && (o.Deleting && f.Aim == decide.Aim(decide.StepUninstall, "") || !o.Deleting && f.Aim == o.Desired) {
		return summary{
			status: metav1.ConditionFalse, reason: f.reason, message: f.message,
			reconciling: !f.stalled, stalled: f.stalled,
		}
	}
	if o.Running != nil && !decide.Repairs(o.Running.Step) {
		return working(o.Running.Step, v)
	}
	switch d.State {
	case decide.StateInSync, decide.StateDrifted, decide.StateDue, decide.StateBusy:
		return summary{status: metav1.ConditionTrue, reason: api.ReasonDeployed, message: fmt.Sprintf("Revision %d of release %s is deployed", o.Newest.Number, v.release.Name)}
	case decide.StateConflict:
		return summary{
			status: metav1.ConditionFalse, reason: api.ReasonNameConflict, stalled: true,
			message: fmt.Sprintf("Releases of others have the names that this resource may use (%v): uninstall them, or rename this resource", releaseNames(v.cr.GetName(), v.cr.GetKind())),
		}
	case decide.StateDeleting, decide.StateUninstalling:
		return working(decide.StepUninstall, v)
	case decide.StateInvalid:
		return summary{status: metav1.ConditionFalse, reason: api.ReasonInvalidValues, message: o.Invalid, stalled: true}
	case decide.StateLocked:
		return summary{status: metav1.ConditionUnknown, reason: api.ReasonLocked, reconciling: true, message: fmt.Sprintf("Revision %d of release %s is %s: somebody else's operation is under way", o.Newest.Number, v.release.Name, o.Newest.Status)}
	default:
		return working(d.Step, v)
	}
}

func working(step decide.Step, v *view) summary {
	s := summary{status: metav1.ConditionUnknown, reconciling: true}
	switch step {
	case decide.StepUninstall, decide.StepRemoveFinalizer:
		s.status = metav1.ConditionFalse
		s.reason, s.message = api.ReasonUninstalling, fmt.Sprintf("Release %s is being uninstalled", v.release.Name)
	case decide.StepAdopt:
		s.reason, s.message = api.ReasonAdopting, fmt.Sprintf("Release %s, which nobody managed, is being taken over", v.release.Name)
	case decide.StepUpgrade:
		s.reason, s.message = api.ReasonUpgrading, fmt.Sprintf("Release %s is being upgraded", v.release.Name)
	case decide.StepUnlock:
		s.reason, s.message = api.ReasonInterrupted, fmt.Sprintf("The last action on release %s was cut short and is tried again", v.release.Name)
	default:
		s.reason, s.message = api.ReasonInstalling, fmt.Sprintf("Release %s is being installed", v.release.Name)
	}
	return s
}

// deployed returns the newest revision that is deployed.
func deployed(history []records.Record) (records.Record, bool) {
	i := slices.IndexFunc(history, func(r records.Record) bool { return r.Status == api.StatusDeployed })
	if i < 0 {
		return records.Record{}, false
	}
	return history[i], true
}

func release(r records.Record) *api.ReleaseStatus {
	s := &api.ReleaseStatus{
		Name:         r.Release,
		Namespace:    r.Namespace,
		Revision:     int64(r.Revision),
		Status:       r.Status,
		ChartVersion: r.ChartVersion,
		AppVersion:   r.AppVersion,
		LastDeployed: deployedAt(r),
	}
	if r.Chart != "" {
		s.Chart = r.Chart + "-" + r.ChartVersion
	}
	return s
}

func entry(r records.Record) api.HistoryEntry {
	return api.HistoryEntry{
		Revision:     int64(r.Revision),
		Status:       r.Status,
		ChartVersion: r.ChartVersion,
		AppVersion:   r.AppVersion,
		LastDeployed: deployedAt(r),
		Description:  r.Description.Description,
	}
}

// deployedAt cuts the time to seconds, as the API does, so that it equals what
// is read back.
func deployedAt(r records.Record) *metav1.Time {
	at := r.Deployed
	if at.IsZero() {
		at = metav1.NewTime(r.Changed)
	}
	at = at.Rfc3339Copy()
	return &at
}

// order puts the conditions that matter most first; those of others come last,
// in the order in which they stand.
func order(kind string) int {
	known := []string{api.ConditionReady, api.ConditionReconciling, api.ConditionStalled, api.ConditionDeployed, api.ConditionDrifted}
	if i := slices.Index(known, kind); i >= 0 {
		return i
	}
	return len(known)
}
