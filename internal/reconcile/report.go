package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/metrics"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/reconcile/status"
	"github.com/chartwright/chartwright/internal/watches"
)

// report patches the status if it has changed, and returns whether it did. If the API
// server rejects the kind's own status fields, it writes the status without them.
func (r *Reconciler) report(ctx context.Context, v *snapshot, d plan.Decision) (changed bool, err error) {
	if !v.Unread {
		r.computeFields(ctx, v)
		r.computeOutputs(ctx, v)
	}
	changed, err = r.patchStatus(ctx, v, d)
	if apierrors.IsInvalid(err) && (v.Fields.Refuse() || v.Outputs.Refuse()) {
		return r.patchStatus(ctx, v, d)
	}
	return changed, err
}

// patchStatus attempts once to patch the status.
func (r *Reconciler) patchStatus(ctx context.Context, v *snapshot, d plan.Decision) (changed bool, err error) {
	now := status.Read(v.CR)
	r.recheckPermissions(v, now.Conditions)
	wanted := status.Compute(&v.Snapshot, d, now.Conditions)
	wanted.Outputs, wanted.OutputsSecret = v.Outputs.Of(now)
	r.count(v, wanted)
	if changed, err = r.writeStatus(ctx, v, wanted); changed {
		r.emitTransitions(v, d, now, wanted)
	}
	return changed, err
}

// writeStatus patches the status if it differs from the stored one.
func (r *Reconciler) writeStatus(ctx context.Context, v *snapshot, wanted api.Status) (changed bool, err error) {
	patch, err := status.Patch(v.CR, wanted, v.Fields)
	if err != nil || patch == nil {
		return false, err
	}
	content := map[string]any{"status": patch}
	if _, replaced := patch["conditions"]; replaced {
		// The patch replaces the whole list, which holds the conditions of others, too.
		content["metadata"] = map[string]any{"resourceVersion": v.CR.GetResourceVersion()}
	}
	data, err := json.Marshal(content)
	if err != nil {
		return false, fmt.Errorf("encode the status: %w", err)
	}
	patched := v.CR.DeepCopy()
	switch err = r.Resources.PatchStatus(ctx, patched, client.RawPatch(types.MergePatchType, data)); {
	case apply.AnswerOf(err) == apply.Gone:
		return false, nil
	case err != nil:
		return false, fmt.Errorf("patch the status: %w", err)
	}
	v.version = patched.GetResourceVersion()
	r.remember(ctx, v.key, patched)
	return true, nil
}

// reportBroken reports to a custom resource that the entry of its kind cannot be served. The rest
// of the status stays as it is.
func (r *Reconciler) reportBroken(ctx context.Context, key types.NamespacedName, cr *unstructured.Unstructured) error {
	if r.Broken == "" || !cr.GetDeletionTimestamp().IsZero() {
		return nil
	}
	v := &snapshot{key: key, version: cr.GetResourceVersion(), Snapshot: status.Snapshot{CR: cr}}
	_, err := r.writeStatus(ctx, v, status.OfBrokenKind(cr, r.Broken))
	return err
}

// count updates the metrics of the custom resource.
func (r *Reconciler) count(v *snapshot, s api.Status) {
	counted := metrics.Release{
		NotReady:   !meta.IsStatusConditionTrue(s.Conditions, api.ConditionReady),
		Held:       meta.IsStatusConditionTrue(s.Conditions, api.ConditionHeld),
		Paused:     meta.IsStatusConditionTrue(s.Conditions, api.ConditionPaused),
		DriftFight: len(v.Fighting) > 0,
	}
	if s.Release != nil {
		counted.Status = s.Release.Status
	}
	r.Metrics.SetRelease(r.kindName(), v.CR.GetUID(), counted)
}

// emitTransitions emits the events of condition changes that no action causes.
// Actions emit their own events.
func (r *Reconciler) emitTransitions(v *snapshot, d plan.Decision, now, wanted api.Status) {
	before, after := now.Conditions, wanted.Conditions
	if d.State == plan.StateConflict || d.State == plan.StateInvalid && !v.Unread {
		r.emitTransition(v, before, after, api.ConditionReady)
	}
	if d.State == plan.StateInUse && d.After == 0 && find(before, api.ConditionReady).Reason != api.ReasonInUse {
		r.emitTransition(v, before, after, api.ConditionReady)
	}
	if r.Kind.DriftMode() == watches.DriftWarn {
		r.emitTransition(v, before, after, api.ConditionDrifted)
	}
	// The list of available revisions may change without an event.
	if why := status.Refused(&v.Snapshot); why != "" && !strings.HasPrefix(find(before, api.ConditionRollbackRefused).Message, why) {
		r.emitTransition(v, before, after, api.ConditionRollbackRefused)
	}
	r.emitTransition(v, before, after, api.ConditionInvalidAnnotations)
	r.emitTransition(v, before, after, api.ConditionUnwatched)
	r.emitReadiness(v, now, after)
	switch was, is := meta.IsStatusConditionTrue(before, api.ConditionPaused), meta.IsStatusConditionTrue(after, api.ConditionPaused); {
	case is && !was:
		r.emit(v, api.EventPaused, "Reconciliation is paused")
	case was && !is:
		r.emit(v, api.EventUnpaused, "Reconciliation is resumed")
	}
}

// emitReadiness emits an event when an unready release becomes ready, when it has failed or
// exceeded its deadline, and when the inputs cannot be read.
func (r *Reconciler) emitReadiness(v *snapshot, before api.Status, after []metav1.Condition) {
	is, was := find(after, api.ConditionReady), find(before.Conditions, api.ConditionReady)
	// The objects may have become ready before the end of the upgrade that fixed them.
	known := r.memory.of(v.CR.GetUID()).unready
	unready := known || before.Resources != nil && len(before.Resources.NotReady) > 0
	if remains := unready && is.Status != metav1.ConditionTrue; remains != known {
		r.memory.with(v.CR.GetUID(), func(of *remembered) { of.unready = remains })
	}
	switch {
	case is.Reason == was.Reason:
	case is.Reason == api.ReasonProgressDeadlineExceeded, is.Reason == api.ReasonObjectFailed, is.Reason == api.ReasonInputsUnread:
		r.Recorder.Event(v.CR, corev1.EventTypeWarning, is.Reason, status.Cut(is.Message))
	case is.Status == metav1.ConditionTrue && was.Status != metav1.ConditionTrue && unready:
		r.emit(v, api.EventReady, fmt.Sprintf("All objects of release %s are ready", v.Release.Name))
	}
}

func (r *Reconciler) emitTransition(v *snapshot, before, after []metav1.Condition, kind string) {
	is, was := find(after, kind), find(before, kind)
	if is.Type == "" || was.Reason == is.Reason && was.Message == is.Message {
		return
	}
	reason := is.Reason
	if kind != api.ConditionReady && kind != api.ConditionDrifted {
		reason = kind
	}
	r.Recorder.Event(v.CR, corev1.EventTypeWarning, reason, status.Cut(is.Message))
}

// find returns the condition of a type, empty if it is missing.
func find(conditions []metav1.Condition, kind string) metav1.Condition {
	if c := meta.FindStatusCondition(conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// recheckPermissions reconciles the custom resource again if its status reports missing
// rules of an earlier process and this process does not know them yet.
func (r *Reconciler) recheckPermissions(v *snapshot, conditions []metav1.Condition) {
	if r.Permissions != nil && !v.RulesKnown && meta.FindStatusCondition(conditions, api.ConditionPermissionsMissing) != nil {
		r.Permissions.Derive()
		r.Wake(v.key, slow)
	}
}

// advise appends the advice to an error.
func (r *Reconciler) advise(v *snapshot, err error) error {
	if advice := r.advice(v, err); advice != "" {
		return fmt.Errorf("%w. %s", err, advice)
	}
	return err
}

// refusedStep reports a forbidden step in the status, if the status may be written.
// Actions report their own failures.
func (r *Reconciler) refusedStep(ctx context.Context, v *snapshot, d plan.Decision, err error) error {
	if r.advice(v, err) == "" {
		return err
	}
	_, failed := r.report(ctx, v, d)
	return errors.Join(r.advise(v, err), failed)
}
