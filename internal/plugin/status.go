package plugin

import (
	"cmp"
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

// statusOutput is the output of status with -o json and yaml.
type statusOutput struct {
	objectRef

	// Ready and Message are those of the condition Ready, State is the column STATUS of
	// kubectl get.
	Ready   metav1.ConditionStatus `json:"ready"`
	State   string                 `json:"state"`
	Message string                 `json:"message,omitempty"`
	// Warning is the last warning event, unless the custom resource is ready.
	Warning string `json:"warning,omitempty"`
	// Conditions are those of shownConditions that are True, and a failed Tested.
	Conditions []metav1.Condition  `json:"conditions,omitempty"`
	Release    *api.ReleaseStatus  `json:"release,omitempty"`
	Rollback   *api.RollbackStatus `json:"rollback,omitempty"`
	Update     *api.UpdateStatus   `json:"update,omitempty"`
	// Objects are the objects of the release that were found.
	Objects []objectOutput `json:"objects"`
	// Hooks are running and failed hooks. They are empty while the newest revision is
	// deployed.
	Hooks []objectOutput `json:"hooks,omitempty"`
	// Missing lists parts that are not shown, because a permission or the release record
	// is missing.
	Missing []string `json:"missing,omitempty"`
}

// objectOutput is the state of an object of a release.
type objectOutput struct {
	objectRef

	// Ready is True, False or Unknown.
	Ready   metav1.ConditionStatus `json:"ready"`
	Reason  string                 `json:"reason,omitempty"`
	Message string                 `json:"message,omitempty"`
	// Cause is why the object is not ready, if known.
	Cause *causeOutput `json:"cause,omitempty"`
	// uid is empty if the object was not read.
	uid types.UID
}

// causeOutput is why an object is not ready. It names the object itself or an object
// that it created, such as a Pod.
type causeOutput struct {
	objectRef

	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Warning is the last warning event, if it adds something.
	Warning string `json:"warning,omitempty"`
}

// shownConditions are shown while they are True.
var shownConditions = []string{
	api.ConditionHeld, api.ConditionPaused, api.ConditionDrifted, api.ConditionUpdateAvailable, api.ConditionRollbackRefused,
	api.ConditionInvalidAnnotations, api.ConditionNumbersKept, api.ConditionStatusFieldsFailed, api.ConditionPermissionsMissing, api.ConditionUnwatched,
}

func newStatus(s *session) *cobra.Command {
	return s.onResource(&cobra.Command{
		Use:   "status KIND/NAME",
		Short: "Show a custom resource, its release and its objects",
		Long: `Show a custom resource, its release and the objects of the release as a tree. For
objects that are not ready, the tree includes the failing Pod and the last warning.
During an action, and after a failed one, it also shows hooks.

Required permissions: get on the custom resource; get on Secrets for the release
record; get on the objects; list on Jobs, Pods, ReplicaSets and Events. If one is
missing, a note names it, and everything else is shown.`,
		Example: example("kubectl chartwright status podset/web", "kubectl chartwright status podset web -o json"),
	}, 0, func(ctx context.Context, _ target, cr *unstructured.Unstructured, _ []string) error {
		out, err := s.status(ctx, cr)
		if err != nil {
			return err
		}
		return s.printWithNotes(out.Missing, out, func() string {
			return s.painter().tree(branch{name: "NAME", state: "READY", text: "STATUS"}, statusTree(out, time.Now()))
		})
	})
}

// status collects the state of a custom resource, its release and its objects.
func (s *session) status(ctx context.Context, cr *unstructured.Unstructured) (statusOutput, error) {
	status := shownStatus(cr)
	out := statusOutput{
		objectRef: refOf(cr), Ready: metav1.ConditionUnknown, State: status.State, Conditions: conditionsOf(status),
		Release: status.Release, Rollback: status.Rollback, Update: status.Update, Objects: []objectOutput{},
	}
	if ready := meta.FindStatusCondition(status.Conditions, api.ConditionReady); ready != nil {
		out.Ready, out.Message = ready.Status, oneLine(ready.Message)
	}
	if message := notObserved(cr, status); message != "" && cr.GetDeletionTimestamp() == nil {
		out.Missing = append(out.Missing, message)
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
		cause := search.cause(ctx, apply.Key(out.objectRef), cr.GetUID())
		out.Warning = oneLine(join("; ", cause.Event, cause.Message))
	}
	out.Missing = append(out.Missing, search.missing...)
	return out, nil
}

// conditionsOf returns the conditions to show, in the order of shownConditions.
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

// trueCondition returns a condition if it is True, else nil.
func trueCondition(status api.Status, kind string) *metav1.Condition {
	if c := meta.FindStatusCondition(status.Conditions, kind); c != nil && c.Status == metav1.ConditionTrue {
		return c
	}
	return nil
}

// oneLine replaces line breaks and repeated spaces by one space.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// shownStatus returns the status to show. While the custom resource is being deleted, Ready says
// so, even if the operator has not observed the deletion, or only finalizers of other controllers
// remain.
func shownStatus(cr *unstructured.Unstructured) api.Status {
	status, deleted := statusOf(cr), cr.GetDeletionTimestamp()
	if deleted == nil {
		return status
	}
	ready, unobserved := meta.FindStatusCondition(status.Conditions, api.ConditionReady), notObserved(cr, status)
	shown := *cmp.Or(ready, &metav1.Condition{Type: api.ConditionReady, Status: metav1.ConditionTrue})
	if shown.Status == metav1.ConditionTrue || unobserved != "" {
		status.State = api.ReasonUninstalling
		shown.Status, shown.Reason, shown.Message = metav1.ConditionFalse, status.State, ""
	}
	since := fmt.Sprintf("being deleted since %s; finalizers: %s", deleted.UTC().Format(time.RFC3339), strings.Join(cr.GetFinalizers(), ", "))
	shown.Message = join("; ", join("; ", shown.Message, since), unobserved)
	meta.SetStatusCondition(&status.Conditions, shown)
	return status
}

// notObserved returns a message while the status is older than the last edit of the
// spec or the deletion, else "".
func notObserved(cr *unstructured.Unstructured, status api.Status) string {
	if status.ObservedGeneration >= cr.GetGeneration() {
		return ""
	}
	return fmt.Sprintf("the operator did not observe the last edit or deletion yet (observed generation %d of %d): if this persists, check that it is running",
		status.ObservedGeneration, cr.GetGeneration())
}
