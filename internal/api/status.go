package api

import (
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Status is the status that Chartwright reports on a custom resource. The operator computes
// it from the release records and its observations and never reads it back, so that
// clearing the status changes nothing else. The tags about and item are the descriptions of a
// field and of the items of a list in the CRD.
type Status struct {
	// ObservedGeneration is the generation of the spec that the conditions describe.
	ObservedGeneration int64 `json:"observedGeneration,omitempty" about:"Generation of the spec that the conditions refer to."`
	// State is the state of the release in one or two words, for the STATUS column.
	State string `json:"state,omitempty" about:"State of the release in one or two words."`
	// Conditions hold Ready and Deployed, and other conditions only while they are True.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Release describes the newest revision.
	Release *ReleaseStatus `json:"release,omitempty" about:"Newest revision of the Helm release."`
	// DeployedRelease names the release in the field that the operator-sdk uses.
	DeployedRelease *DeployedRelease `json:"deployedRelease,omitempty" about:"Name of the release in the field that the operator-sdk uses."`
	// Update describes a newer chart that is not deployed yet.
	Update *UpdateStatus `json:"update,omitempty" about:"Chart that the release will be upgraded to, if its chart has changed."`
	// Rollback describes the held revision.
	Rollback *RollbackStatus `json:"rollback,omitempty" about:"Rollback that is in effect, if any."`
	// Previous is the revision that a rollback to "previous" selects, if the newest change has
	// made no revision. Otherwise, the records show it.
	Previous int64 `json:"previous,omitempty" about:"Revision that a rollback to previous selects, if the newest change has made no revision."`
	// Answered holds the requests that were answered.
	Answered *AnsweredStatus `json:"answered,omitempty" about:"Values of one-time request annotations that the operator has processed. The conditions report whether a request succeeded, failed or was refused."`
	// Plan describes the action that waits for an approval.
	Plan *PlanStatus `json:"plan,omitempty" about:"Action that waits for an approval."`
	// Outputs are the outputs that are not sensitive, by name.
	Outputs Outputs `json:"outputs,omitempty"`
	// OutputsSecret is the name of the Secret with the sensitive outputs.
	OutputsSecret string `json:"outputsSecret,omitempty" about:"Name of the Secret with the sensitive outputs."`
	// Dependencies names what the custom resource depends on, in the order of the watches
	// file and of the annotation, at most DependenciesLimit. It omits their state: a change
	// of a dependency must not cause writes of everything that depends on it.
	Dependencies []DependencyStatus `json:"dependencies,omitempty" about:"Objects that the custom resource depends on. They must be ready before an install or upgrade." item:"Object, or all objects that the selector matches."`
	// Resources counts the resources of the release by health.
	Resources *ResourcesStatus `json:"resources,omitempty" about:"Readiness of the release's resources."`
	// History holds the newest revisions, newest first, at most HistoryLimit.
	History []HistoryEntry `json:"history,omitempty" about:"Stored revisions, newest first." item:"Stored revision of the release."`
}

// Outputs are values by name.
type Outputs map[string]any

// UnmarshalJSON decodes outputs. Unlike encoding/json, it preserves integers.
func (o *Outputs) UnmarshalJSON(data []byte) error {
	var content map[string]any
	if err := utiljson.Unmarshal(data, &content); err != nil {
		return err
	}
	*o = content
	return nil
}

// JSONNames returns the names of the fields of a struct in JSON.
func JSONNames(of reflect.Type) []string {
	var names []string
	for _, field := range reflect.VisibleFields(of) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "-" {
			names = append(names, name)
		}
	}
	return names
}

// HistoryLimit is the maximum length of Status.History.
const HistoryLimit = 10

// ReleaseStatus describes one Helm release.
type ReleaseStatus struct {
	Name      string `json:"name" about:"Name of the release, as printed by helm list."`
	Namespace string `json:"namespace" about:"Namespace of the release."`
	Revision  int64  `json:"revision,omitempty" about:"Number of the revision."`
	// Status is Helm's status of the revision: deployed, failed, pending-upgrade, …
	Status string `json:"status,omitempty" about:"Helm's status of the revision, such as deployed, failed or pending-upgrade."`
	// Chart is "<name>-<version>", as in helm list.
	Chart        string       `json:"chart,omitempty" about:"Name and version of the chart, as printed by helm list."`
	ChartVersion string       `json:"chartVersion,omitempty" about:"Version of the chart."`
	AppVersion   string       `json:"appVersion,omitempty" about:"Version of the application, from Chart.yaml."`
	LastDeployed *metav1.Time `json:"lastDeployed,omitempty" about:"Time at which Helm created the revision."`
}

// DeployedRelease repeats the name of the release for tools that read the operator-sdk's
// status.
type DeployedRelease struct {
	Name string `json:"name" about:"Name of the release."`
}

// RollbackStatus describes a hold.
type RollbackStatus struct {
	// To is the held revision, and From the revision before the rollback.
	To   int64 `json:"to" about:"Revision that the release was rolled back to."`
	From int64 `json:"from,omitempty" about:"Revision that the rollback replaced."`
	// Since is the time of the rollback.
	Since *metav1.Time `json:"since,omitempty" about:"Time of the rollback."`
}

// PlanStatus describes an action that waits for an approval.
type PlanStatus struct {
	// Digest is the value of the annotation that approves the plan.
	Digest string `json:"digest" about:"Value of chartwright.dev/approve that approves it."`
	// Summary names the operations that need the approval.
	Summary string `json:"summary" about:"Operations that need the approval."`
}

// UpdateStatus describes the chart of the next upgrade.
type UpdateStatus struct {
	// Chart is "<name>-<version>".
	Chart        string `json:"chart" about:"Name and version of the chart."`
	ChartVersion string `json:"chartVersion" about:"Version of the chart."`
	// Place is the position in the rollout queue, from 1. Of is the number of custom
	// resources in the rollout, including those that are already upgraded. Both are 0 if
	// the custom resource is not in the queue.
	Place int64 `json:"place,omitempty" about:"Position in the rollout queue, from 1."`
	Of    int64 `json:"of,omitempty" about:"Number of custom resources in the rollout."`
}

// DependenciesLimit is the maximum length of Status.Dependencies.
const DependenciesLimit = 32

// DependencyStatus names an object, or all objects that a selector matches.
type DependencyStatus struct {
	APIVersion string `json:"apiVersion" about:"API version of the object."`
	Kind       string `json:"kind" about:"Kind of the object."`
	// Namespace is empty for objects that the operator knows to be cluster-scoped.
	Namespace string `json:"namespace,omitempty" about:"Namespace of the object."`
	// Name is empty if Selector, a label selector as text, selects the objects.
	Name     string `json:"name,omitempty" about:"Name of the object."`
	Selector string `json:"selector,omitempty" about:"Label selector."`
}

// ResourcesStatus counts the resources of a release.
type ResourcesStatus struct {
	Total int64 `json:"total" about:"Number of resources."`
	Ready int64 `json:"ready" about:"Number of ready resources."`
	// NotReady lists resources that are not ready, at most NotReadyLimit.
	NotReady []ObjectStatus `json:"notReady,omitempty" about:"The first ten resources that are not ready." item:"Resource that is not ready."`
}

// NotReadyLimit is the maximum length of ResourcesStatus.NotReady.
const NotReadyLimit = 10

// ObjectStatus describes a resource that is not ready, and the reason.
type ObjectStatus struct {
	Kind      string `json:"kind" about:"Kind of the resource."`
	Namespace string `json:"namespace,omitempty" about:"Namespace of the resource."`
	Name      string `json:"name" about:"Name of the resource."`
	Reason    string `json:"reason,omitempty" about:"Why the resource is not ready, as one CamelCase word."`
	Message   string `json:"message,omitempty" about:"Why the resource is not ready, as a sentence."`
}

// HistoryEntry is one stored revision of a release.
type HistoryEntry struct {
	Revision     int64        `json:"revision" about:"Number of the revision."`
	Status       string       `json:"status" about:"Helm's status of the revision."`
	ChartVersion string       `json:"chartVersion,omitempty" about:"Version of the chart."`
	AppVersion   string       `json:"appVersion,omitempty" about:"Version of the application, from Chart.yaml."`
	LastDeployed *metav1.Time `json:"lastDeployed,omitempty" about:"Time at which Helm created the revision."`
	Description  string       `json:"description,omitempty" about:"Helm's description of the revision."`
}

// AnsweredStatus repeats the values of the request annotations that the operator has
// answered: it has carried the request out, refused it, or tried and failed. The conditions
// show which. A client can wait for the value here, and then for Ready.
type AnsweredStatus struct {
	RollbackTo           string `json:"rollbackTo,omitempty" about:"Value of chartwright.dev/rollback-to."`
	ReconcileRequestedAt string `json:"reconcileRequestedAt,omitempty" about:"Value of chartwright.dev/reconcile-requested-at."`
	Force                string `json:"force,omitempty" about:"Value of chartwright.dev/force."`
	Test                 string `json:"test,omitempty" about:"Value of chartwright.dev/test."`
}

// Statuses of a revision, as Helm names them.
const (
	StatusDeployed        = "deployed"
	StatusSuperseded      = "superseded"
	StatusFailed          = "failed"
	StatusUninstalling    = "uninstalling"
	StatusUninstalled     = "uninstalled"
	StatusPendingInstall  = "pending-install"
	StatusPendingUpgrade  = "pending-upgrade"
	StatusPendingRollback = "pending-rollback"
)

// Pending reports whether the status of a revision means that its action has started and
// not ended.
func Pending(status string) bool {
	return status == StatusPendingInstall || status == StatusPendingUpgrade || status == StatusPendingRollback
}

// Uninstalled reports whether a release is uninstalled or being uninstalled.
func Uninstalled(status string) bool {
	return status == StatusUninstalling || status == StatusUninstalled
}

// HookState is the state of a hook, a Job or a Pod, that has not ended. An action waits
// until each of its hooks ends.
type HookState string

// States of a hook. A hook in state HookStuck or HookCrashing makes no progress, and is not
// expected to.
const (
	// HookStarting: no container runs yet, and no problem is known.
	HookStarting HookState = "Starting"
	// HookRunning: a container of one of its pods runs.
	HookRunning HookState = "Running"
	// HookStuck: no container runs and none can start: the image cannot be pulled, the
	// configuration is wrong, no node fits, or the pod cannot be created.
	HookStuck HookState = "Stuck"
	// HookCrashing: no container runs because the last one failed. The next attempt waits
	// for its backoff.
	HookCrashing HookState = "Crashing"
)

// Idle reports whether the hook can be ended in this state without losing work.
func (s HookState) Idle() bool { return s == HookStuck || s == HookCrashing }
