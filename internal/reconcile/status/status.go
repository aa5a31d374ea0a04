package status

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/inventory"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/release"
)

// maxCondition is the maximum length of a condition's message in bytes. The API server
// rejects messages of more than 32768 characters, and several conditions may contain
// the same long error. Missing rules have a larger limit, see maxRules, because users
// copy them.
const maxCondition = 4 << 10

// formerPermissionsMissing is the former type of api.ConditionPermissionsMissing. It is
// removed from the statuses that an earlier version wrote.
const formerPermissionsMissing = "RightsMissing"

// Compute returns the whole status of a custom resource. It takes the times of the last
// transitions, and the conditions of other controllers, from the present conditions.
func Compute(v *Snapshot, d plan.Decision, conditions []metav1.Condition) api.Status {
	ready := readiness(v, d)
	s := api.Status{
		ObservedGeneration: v.CR.GetGeneration(),
		State:              ready.state,
		Conditions:         slices.Clone(conditions),
	}
	set := func(kind string, state metav1.ConditionStatus, reason, message string) {
		if kind != api.ConditionPermissionsMissing {
			message = api.Truncate(message, maxCondition)
		}
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{
			Type: kind, Status: state, Reason: reason, Message: message, ObservedGeneration: s.ObservedGeneration,
		})
	}
	// Some conditions exist only while they are True.
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
	driftReason, driftMessage, is := drifted(v)
	setWhile(is, api.ConditionDrifted, driftReason, driftMessage)
	s.Rollback = rollback(v)
	s.Previous = int64(v.Previous)
	s.Answered = answered(v, d)
	s.Resources = resources(v)
	s.Dependencies = v.DependsOn
	reason, hold := held(v)
	setWhile(hold != "", api.ConditionHeld, reason, hold)
	if f := v.failing(); f != nil {
		s.Plan = f.Plan
	}
	s.Update = v.Update
	setWhile(v.Update != nil, api.ConditionUpdateAvailable, v.UpdateReason, updateMessage(v))
	pause := pausing(d)
	setWhile(pause != "", api.ConditionPaused, api.ReasonPaused, pause)
	refusal := refusal(v)
	setWhile(refusal != "", api.ConditionRollbackRefused, refusalReason(v), refusal)
	setWhile(len(v.Requests.Problems) > 0, api.ConditionInvalidAnnotations, api.ReasonInvalidValue, Cut(strings.Join(v.Requests.Problems, "; ")))
	if v.RulesKnown {
		setWhile(v.MissingRules != "", api.ConditionPermissionsMissing, api.ReasonForbidden,
			api.Truncate("Add to the rules of the operator's role: "+v.MissingRules, maxRules))
	}
	meta.RemoveStatusCondition(&s.Conditions, formerPermissionsMissing)
	kept := numbersKept(v)
	setWhile(kept != "", api.ConditionNumbersKept, api.ReasonFieldsDiffer, kept)
	setWhile(v.Unwatched != "", api.ConditionUnwatched, api.ReasonWatchFailed, v.Unwatched)
	if failures := v.fieldFailures(); !v.Unread {
		setWhile(failures != "", api.ConditionStatusFieldsFailed, api.ReasonExpressionFailed, failures)
	}
	switch {
	case len(v.History) == 0 || v.History[0].Tested == nil:
		meta.RemoveStatusCondition(&s.Conditions, api.ConditionTested)
	case v.History[0].Tested.Passed:
		set(api.ConditionTested, metav1.ConditionTrue, api.ReasonTestsPassed, v.History[0].Tested.Message)
	default:
		set(api.ConditionTested, metav1.ConditionFalse, api.ReasonTestsFailed, v.History[0].Tested.Message)
	}
	if r, ok := Deployed(v.History); ok {
		reason := api.ReasonUpgradeSuccessful
		if r.Revision == 1 {
			reason = api.ReasonInstallSuccessful
		}
		set(api.ConditionDeployed, metav1.ConditionTrue, reason, fmt.Sprintf("Revision %d of release %s is deployed", r.Revision, r.Release))
		s.DeployedRelease = &api.DeployedRelease{Name: r.Release}
	} else {
		set(api.ConditionDeployed, metav1.ConditionFalse, api.ReasonNotInstalled, "No revision is deployed")
	}
	repairFailure := driftMessage
	if driftReason == api.ReasonDriftDetected || driftReason == api.ReasonDriftFight {
		repairFailure = ""
	}
	setOperatorSDKConditions(&s.Conditions, s.ObservedGeneration, ready, s.DeployedRelease != nil, repairFailure)
	if len(v.History) > 0 {
		s.Release = OfRelease(v.History[0])
	}
	for i, r := range v.History {
		if i == api.HistoryLimit {
			break
		}
		s.History = append(s.History, entry(r))
	}
	// A stable order avoids patches that only change the order. A condition that is set
	// again would be the last one.
	slices.SortStableFunc(s.Conditions, func(a, b metav1.Condition) int { return order(a.Type) - order(b.Type) })
	return s
}

// Deployed returns the newest deployed revision. At the end of an upgrade or a
// rollback Helm first marks the old revision superseded and then the new one
// deployed: until the second write, the newest superseded revision counts.
func Deployed(history []release.Record) (release.Record, bool) {
	for _, status := range []string{api.StatusDeployed, api.StatusSuperseded} {
		if status == api.StatusSuperseded && !changing(history) {
			break
		}
		if i := slices.IndexFunc(history, func(r release.Record) bool { return r.Status == status }); i >= 0 {
			return history[i], true
		}
	}
	return release.Record{}, false
}

// changing reports whether an upgrade or a rollback to the newest revision is pending.
func changing(history []release.Record) bool {
	return len(history) > 0 && (history[0].Status == api.StatusPendingUpgrade || history[0].Status == api.StatusPendingRollback)
}

// OfRelease describes the revision of a record.
func OfRelease(r release.Record) *api.ReleaseStatus {
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

func entry(r release.Record) api.HistoryEntry {
	return api.HistoryEntry{
		Revision:     int64(r.Revision),
		Status:       r.Status,
		ChartVersion: r.ChartVersion,
		AppVersion:   r.AppVersion,
		LastDeployed: deployedAt(r),
		Description:  description(r),
	}
}

// description describes a revision, with the plan that was approved.
func description(r release.Record) string {
	if r.Approved == "" {
		return r.Description.Description
	}
	return strings.TrimPrefix(r.Description.Description+"; plan "+r.Approved+" approved", "; ")
}

// deployedAt returns the time of deployment in seconds, the precision of the API, so
// that it equals the stored time.
func deployedAt(r release.Record) *metav1.Time {
	at := r.Deployed
	if at.IsZero() {
		at = metav1.NewTime(r.Changed)
	}
	at = at.Rfc3339Copy()
	return &at
}

// OfBrokenKind returns the status of a custom resource whose kind cannot be served, because of a
// problem in the watches file. Its release is as it was.
func OfBrokenKind(cr *unstructured.Unstructured, problem string) api.Status {
	s := Read(cr)
	s.Conditions, s.State, s.ObservedGeneration = slices.Clone(s.Conditions), api.ReasonKindBroken, cr.GetGeneration()
	message := Cut("The watches file of the operator has a problem. The release stays as it is until the operator starts with a corrected file: " + problem)
	meta.RemoveStatusCondition(&s.Conditions, api.ConditionReconciling)
	for kind, is := range map[string]metav1.ConditionStatus{api.ConditionReady: metav1.ConditionFalse, api.ConditionStalled: metav1.ConditionTrue} {
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{Type: kind, Status: is, Reason: api.ReasonKindBroken, Message: message, ObservedGeneration: s.ObservedGeneration})
	}
	slices.SortStableFunc(s.Conditions, func(a, b metav1.Condition) int { return order(a.Type) - order(b.Type) })
	return s
}

// numbersKept describes which fields the numbers of the watches entry would change, empty if
// the deployed revision has these numbers.
func numbersKept(v *Snapshot) string {
	deployed, ok := Deployed(v.History)
	if v.NumbersChosen || !ok || deployed.KeptNumbers == "" {
		return ""
	}
	was, is := "Helm", "Integer"
	if deployed.Integers {
		was, is = is, was
	}
	return fmt.Sprintf("Revision %d has the numbers of mode %s, because mode %s would change these fields: %s. To change them, set numbers: %s in the watches entry; to keep them, set numbers: %s", deployed.Revision, was, is, deployed.KeptNumbers, is, was)
}

// order sorts conditions by importance. Conditions of other controllers come last and
// keep their order.
func order(kind string) int {
	known := []string{
		api.ConditionReady, api.ConditionReconciling, api.ConditionStalled, api.ConditionDeployed, api.ConditionHeld, api.ConditionPaused, api.ConditionUpdateAvailable,
		api.ConditionDrifted, api.ConditionTested, api.ConditionRollbackRefused, api.ConditionInvalidAnnotations, api.ConditionNumbersKept, api.ConditionStatusFieldsFailed,
		api.ConditionPermissionsMissing, api.ConditionUnwatched, api.ConditionInitialized, api.ConditionReleaseFailed, api.ConditionIrreconcilable,
	}
	if i := slices.Index(known, kind); i >= 0 {
		return i
	}
	return len(known)
}

// Contested is an object that another client changes again after each correction.
type Contested struct {
	apply.Key
	// Pointers are JSON pointers to the fields, nil if they are unknown.
	Pointers []string
}

func (c Contested) text() string { return c.String() + ": " + c.Advice() }

// Advice returns what users can do.
func (c Contested) Advice() string {
	if len(c.Pointers) == 0 {
		return "Find out what changes it"
	}
	paths, _ := json.Marshal(c.Pointers)
	return fmt.Sprintf("Find out what changes it, or add to drift.ignore of the kind: {kind: %s, name: %s, paths: %s}", c.Kind, c.Name, paths)
}

// drifted returns the reason and the message of the condition Drifted, and whether it
// is True.
func drifted(v *Snapshot) (reason, message string, holds bool) {
	if f := v.uncorrected(); f != nil {
		return f.Reason, f.Message, true
	}
	if len(v.Fighting) > 0 {
		return api.ReasonDriftFight, Cut("Objects drift again after every correction, so corrections are delayed more and more. " + list(v.Fighting, "; ", Contested.text)), true
	}
	if len(v.Drift) == 0 {
		return "", "", false
	}
	text := func(d inventory.Drift) string {
		if d.Gone {
			return d.String() + " (deleted)"
		}
		return d.String()
	}
	return api.ReasonDriftDetected, Cut("Changed or deleted by others: " + list(v.Drift, ", ", text)), true
}

// list joins the texts of items.
func list[T any](items []T, separator string, text func(T) string) string {
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = text(item)
	}
	return strings.Join(texts, separator)
}

// resources counts the objects. It returns nil if no revision is deployed.
func resources(v *Snapshot) *api.ResourcesStatus {
	if v.Health.Total == 0 && len(v.Health.Unready) == 0 {
		return nil
	}
	s := &api.ResourcesStatus{Total: int64(v.Health.Total), Ready: int64(v.Health.Total - len(v.Health.Unready))}
	for i, u := range v.Health.Unready {
		if i == api.NotReadyLimit {
			break
		}
		s.NotReady = append(s.NotReady, api.ObjectStatus{
			Kind: u.Kind, Namespace: u.Namespace, Name: u.Name, Reason: u.Reason, Message: api.Truncate(v.Redact(u.Message), maxMessage),
		})
	}
	return s
}

// maxMessage is the maximum length of the message about one object.
const maxMessage = 256

// Cut truncates a message to the maximum length of an event's note.
func Cut(message string) string { return api.Truncate(message, MaxNote) }

// MaxNote is the API server's limit of an event's note, in bytes.
const MaxNote = 1024
