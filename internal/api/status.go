package api

import (
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Status is what Chartwright reports about a custom resource. It is computed
// whole from what is stored and observed, and read back by nobody: clearing it
// changes nothing that runs.
type Status struct {
	// ObservedGeneration is the generation of the spec that the conditions
	// speak of.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// State is the release's state in a word or two, for the STATUS column.
	State string `json:"state,omitempty"`
	// Conditions hold Ready, Deployed and, while they are True, Reconciling
	// and Stalled.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Release describes the newest revision.
	Release *ReleaseStatus `json:"release,omitempty"`
	// DeployedRelease names the release, where the operator-sdk names it.
	DeployedRelease *DeployedRelease `json:"deployedRelease,omitempty"`
	// Update tells of a newer chart that is not deployed yet.
	Update *UpdateStatus `json:"update,omitempty"`
	// Rollback tells of the revision that is held.
	Rollback *RollbackStatus `json:"rollback,omitempty"`
	// Answered holds what people asked for and was answered.
	Answered *AnsweredStatus `json:"answered,omitempty"`
	// Resources tells how the release's objects are.
	Resources *ResourcesStatus `json:"resources,omitempty"`
	// History holds the newest revisions, newest first, at most HistoryLimit.
	History []HistoryEntry `json:"history,omitempty"`
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

// HistoryLimit is the number of revisions listed in Status.History.
const HistoryLimit = 10

// ReleaseStatus describes one Helm release.
type ReleaseStatus struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Revision  int64  `json:"revision,omitempty"`
	// Status is Helm's word: deployed, failed, pending-upgrade, …
	Status string `json:"status,omitempty"`
	// Chart is "<name>-<version>", as helm list prints it.
	Chart        string       `json:"chart,omitempty"`
	ChartVersion string       `json:"chartVersion,omitempty"`
	AppVersion   string       `json:"appVersion,omitempty"`
	LastDeployed *metav1.Time `json:"lastDeployed,omitempty"`
}

// DeployedRelease repeats the release name for readers of the operator-sdk's
// status.
type DeployedRelease struct {
	Name string `json:"name"`
}

// RollbackStatus describes a rollback that holds.
type RollbackStatus struct {
	// To is the revision whose manifest runs again, From the one that it took
	// the place of.
	To   int64 `json:"to"`
	From int64 `json:"from,omitempty"`
	// Since is when the rollback was done.
	Since *metav1.Time `json:"since,omitempty"`
}

// UpdateStatus describes the chart that is to take the place of the release's.
type UpdateStatus struct {
	// Chart is "<name>-<version>".
	Chart        string `json:"chart"`
	ChartVersion string `json:"chartVersion"`
	// Place is the place in the line of those that wait, from 1, and Of the
	// number of all that take part in the rollout, those that have gone
	// included. Both are 0 where it does not wait in line.
	Place int64 `json:"place,omitempty"`
	Of    int64 `json:"of,omitempty"`
}

// ResourcesStatus counts the objects of a release.
type ResourcesStatus struct {
	Total int64 `json:"total"`
	Ready int64 `json:"ready"`
	// NotReady holds those that are not, at most NotReadyLimit.
	NotReady []ObjectStatus `json:"notReady,omitempty"`
}

// Truncate shortens a text that users read to a number of bytes. The result is
// valid UTF-8, and ends in an ellipsis if something was cut off.
func Truncate(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len("…")], "") + "…"
}

// NotReadyLimit is the number of objects listed in ResourcesStatus.NotReady.
const NotReadyLimit = 10

// ObjectStatus tells what an object waits for.
type ObjectStatus struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Reason    string `json:"reason,omitempty"`
	Message   string `json:"message,omitempty"`
}

// HistoryEntry is one stored revision of a release.
type HistoryEntry struct {
	Revision     int64        `json:"revision"`
	Status       string       `json:"status"`
	ChartVersion string       `json:"chartVersion,omitempty"`
	AppVersion   string       `json:"appVersion,omitempty"`
	LastDeployed *metav1.Time `json:"lastDeployed,omitempty"`
	Description  string       `json:"description,omitempty"`
}

// AnsweredStatus repeats the annotations by which people ask for something
// once, as soon as the answer is there: it was done, refused, or tried in vain.
// Which of them it was, the conditions tell. Whoever asks can wait for the
// value here, and then for Ready.
type AnsweredStatus struct {
	RollbackTo           string `json:"rollbackTo,omitempty"`
	ReconcileRequestedAt string `json:"reconcileRequestedAt,omitempty"`
	Force                string `json:"force,omitempty"`
	Test                 string `json:"test,omitempty"`
}

// Statuses of a revision, by Helm's words.
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

// Pending reports whether a revision's status says that its action has begun and
// not ended.
func Pending(status string) bool {
	return status == StatusPendingInstall || status == StatusPendingUpgrade || status == StatusPendingRollback
}

// Uninstalled reports whether a release is gone or on its way out.
func Uninstalled(status string) bool {
	return status == StatusUninstalling || status == StatusUninstalled
}

// HookState is how far a hook, a Job or a Pod, is. An action waits for each of
// its hooks to end.
type HookState string

// The states of a hook that has not ended. Only HookStuck and HookCrashing are
// states in which a hook does nothing and is not expected to.
const (
	// HookStarting: no container runs, and nothing says that none will.
	HookStarting HookState = "Starting"
	// HookRunning: a container of one of its pods runs.
	HookRunning HookState = "Running"
	// HookStuck: no container runs, and none can be started: the image cannot be
	// pulled, the configuration is wrong, no node fits, or no pod can be made.
	HookStuck HookState = "Stuck"
	// HookCrashing: no container runs, since the last one failed, and the next try
	// waits for its back-off.
	HookCrashing HookState = "Crashing"
)

// Idle reports whether nothing is lost when the hook ends in this state.
func (s HookState) Idle() bool { return s == HookStuck || s == HookCrashing }
