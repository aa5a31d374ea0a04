package reconcile

import (
	"errors"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/helm"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/reconcile/status"
)

// explainGuard returns the failure of an action that waits for an approval, or of an
// uninstall that an object with the annotation api.AnnotationProtect stops.
func (r *Reconciler) explainGuard(v *snapshot, a action, err error) status.Failure {
	f := explain(a, err)
	guarded := map[apply.Key]types.UID{}
	if waiting, ok := errors.AsType[*helm.ApprovalError](err); ok {
		f.Waits = true
		f.Plan = &api.PlanStatus{Digest: waiting.Plan.Digest(), Summary: status.Cut(v.Redact(waiting.Plan.Summary()))}
		for _, operation := range waiting.Plan.Operations {
			guarded[operation.Key] = operation.UID
		}
	}
	if protected, ok := errors.AsType[*helm.ProtectedError](err); ok {
		maps.Copy(guarded, protected.Objects)
	}
	// Changes of objects that are not watched are not detected.
	maps.DeleteFunc(guarded, func(key apply.Key, uid types.UID) bool {
		state, known := r.Inventory.Get(key)
		return !known || state.UID != uid
	})
	f.Guarded = guarded
	return f
}

// guardedChanged reports whether one of the objects that make an action wait has changed:
// it was deleted, or its annotations have changed.
func (r *Reconciler) guardedChanged(f *status.Failure) bool {
	for key, uid := range f.Guarded {
		state, known := r.Inventory.Get(key)
		if !known || state.UID != uid || state.Kept || state.Deleting || f.Reason == api.ReasonObjectProtected && !state.Protected {
			return true
		}
	}
	return false
}

// reportApproval emits an event if the newest revision, or the move of the release, was
// approved.
func (r *Reconciler) reportApproval(v *snapshot, d plan.Decision) {
	if d.State == plan.StateMoving {
		r.emit(v, api.EventApproved, fmt.Sprintf("The move to namespace %s was approved by the annotation %s: plan %s", v.Observation.MoveTo, api.AnnotationApprove, v.Requests.Approve))
		return
	}
	if d.Step != plan.StepUpgrade && d.Step != plan.StepRollback {
		return
	}
	history := r.Index.History(v.Release.Namespace, v.Release.Name)
	if len(history) > 0 && history[0].Approved != "" {
		r.emit(v, api.EventApproved, fmt.Sprintf("Revision %d was approved by the annotation %s: plan %s", history[0].Revision, api.AnnotationApprove, history[0].Approved))
	}
}
