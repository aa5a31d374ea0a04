package plugin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
)

// statusOutput is how a custom resource, its release and its objects are.
type statusOutput struct {
	Group     string `json:"group"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Ready is the status of the condition Ready, State the word in the column
	// STATUS, and Message the condition's.
	Ready   metav1.ConditionStatus `json:"ready"`
	State   string                 `json:"state"`
	Message string                 `json:"message,omitempty"`
	// Warning is the last warning about the custom resource, where it is not
	// ready.
	Warning string `json:"warning,omitempty"`
	// Conditions are the shown conditions beside Ready.
	Conditions []metav1.Condition  `json:"conditions,omitempty"`
	Release    *api.ReleaseStatus  `json:"release,omitempty"`
	Rollback   *api.RollbackStatus `json:"rollback,omitempty"`
	Update     *api.UpdateStatus   `json:"update,omitempty"`
	// Objects are those of the release, as far as they could be found.
	Objects []objectOutput `json:"objects"`
	// Hooks are the hooks of the release that run or have failed, unless its newest
	// revision is deployed.
	Hooks []objectOutput `json:"hooks,omitempty"`
	// Missing says what is not told for want of a right or of the record, a
	// sentence each.
	Missing []string `json:"missing,omitempty"`
}

// objectOutput is how an object of a release is.
type objectOutput struct {
	objectRef

	// Ready is True, False or, if that is not known, Unknown.
	Ready   metav1.ConditionStatus `json:"ready"`
	Reason  string                 `json:"reason,omitempty"`
	Message string                 `json:"message,omitempty"`
	// Cause is why it is not ready, where that could be found out.
	Cause *causeOutput `json:"cause,omitempty"`
	// uid is empty if the object was not read.
	uid types.UID
}

// causeOutput is why an object is not ready, and at which object that shows: the
// one itself, or one that it made.
type causeOutput struct {
	objectRef

	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Warning is the last one about the object, if it adds something.
	Warning string `json:"warning,omitempty"`
}

// shownConditions are the conditions that status shows while they are True.
var shownConditions = []string{
	api.ConditionHeld, api.ConditionPaused, api.ConditionDrifted, api.ConditionUpdateAvailable, api.ConditionRollbackRefused,
	api.ConditionInvalidAnnotations, api.ConditionStatusFieldsFailed, api.ConditionRightsMissing, api.ConditionUnwatched,
}

func newStatus(s *session) *cobra.Command {
	return s.onResource(&cobra.Command{
		Use:   "status KIND/NAME",
		Short: "Show a custom resource, its release and its objects as a tree",
		Long: `Show a custom resource, its release and the objects of the release as a tree:
what is ready, and of what is not, why: the pod that fails and the last warning
about it. Unless the newest revision is deployed, the tree has its hooks, too,
that run or have failed.

The objects are those in the record of the release, which takes the right to get
Secrets in its namespace. Without it they are found by their labels, as far as
you may list their kinds. What you may not read is shown as the operator reports
it, and the right that is missing is named.`,
		Example: `  kubectl chartwright status podset/web
  kubectl chartwright status podset web -o json`,
	}, 0, func(ctx context.Context, _ target, cr *unstructured.Unstructured, _ []string) error {
		out, err := s.status(ctx, cr)
		if err != nil {
			return err
		}
		return s.printNoting(out.Missing, out, func() string {
			return s.painter().tree(branch{name: "NAME", state: "READY", text: "STATUS"}, statusTree(out, time.Now()))
		})
	})
}

// status finds out how a custom resource and everything below it is.
func (s *session) status(ctx context.Context, cr *unstructured.Unstructured) (statusOutput, error) {
	status, gk := statusOf(cr), cr.GroupVersionKind().GroupKind()
	out := statusOutput{
		Group: gk.Group, Kind: gk.Kind, Namespace: cr.GetNamespace(), Name: cr.GetName(),
		Ready: metav1.ConditionUnknown, State: status.State, Conditions: conditionsOf(status),
		Release: status.Release, Rollback: status.Rollback, Update: status.Update, Objects: []objectOutput{},
	}
	if ready := meta.FindStatusCondition(status.Conditions, api.ConditionReady); ready != nil {
		out.Ready, out.Message = ready.Status, oneLine(ready.Message)
	}
	if stale := unseen(cr, status); stale != "" {
		out.Missing = append(out.Missing, stale)
	}
	search := &objectSearch{session: s, cr: cr, status: status}
	if status.Release != nil {
		var err error
		if out.Objects, err = search.objects(ctx); err != nil {
			return out, err
		}
		if status.Release.Status != api.StatusDeployed || cr.GetDeletionTimestamp() != nil {
			out.Hooks = search.hooks(ctx)
		}
	}
	if out.Ready != metav1.ConditionTrue {
		key := apply.Key{Group: gk.Group, Kind: gk.Kind, Namespace: cr.GetNamespace(), Name: cr.GetName()}
		cause := search.why(ctx, key, cr.GetUID())
		out.Warning = oneLine(joined("; ", cause.Event, cause.Message))
	}
	out.Missing = append(out.Missing, search.missing...)
	return out, nil
}

// conditionsOf returns the conditions to show, in a fixed order.
func conditionsOf(status api.Status) []metav1.Condition {
	var found []metav1.Condition
	for _, kind := range shownConditions {
		if c := trueCondition(status, kind); c != nil {
			found = append(found, *c)
		}
	}
	if c := meta.FindStatusCondition(status.Conditions, api.ConditionTested); c != nil && c.Status == metav1.ConditionFalse {
		found = append(found, *c)
	}
	return found
}

// sortObjects sorts objects by kind, namespace and name.
func sortObjects(objects []objectOutput) {
	slices.SortFunc(objects, func(a, b objectOutput) int {
		return slices.Compare([]string{a.Kind, a.Namespace, a.Name, a.Group}, []string{b.Kind, b.Namespace, b.Name, b.Group})
	})
}

// trueCondition returns a condition if it is true.
func trueCondition(status api.Status, kind string) *metav1.Condition {
	if c := meta.FindStatusCondition(status.Conditions, kind); c != nil && c.Status == metav1.ConditionTrue {
		return c
	}
	return nil
}

// oneLine makes a line of a text, for a column of a table.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// unseen says that the operator does not report on the last edit of the spec,
// empty where it does.
func unseen(cr *unstructured.Unstructured, status api.Status) string {
	if status.ObservedGeneration >= cr.GetGeneration() {
		return ""
	}
	return fmt.Sprintf("the operator has not seen the last edit of the spec (it reports on generation %d of %d): if that lasts, look whether it runs",
		status.ObservedGeneration, cr.GetGeneration())
}
