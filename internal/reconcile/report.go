package reconcile

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/metrics"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/watches"
)

// report patches the status to what is observed, if it says anything else.
// Fields that are not ours stay as they are. It returns whether it did.
func (r *Reconciler) report(ctx context.Context, v *view, d plan.Decision) (changed bool, err error) {
	now := decodeStatus(v.cr.Object["status"])
	r.computeFields(ctx, v)
	r.lookAtRights(v, now.Conditions)
	wanted := status(v, d, now.Conditions)
	r.count(v, wanted)
	patch, err := difference(now, wanted)
	if err == nil {
		patch = dropManifest(v.fields.addTo(patch, v.cr.Object["status"]), v.cr.Object["status"])
	}
	if err != nil || patch == nil {
		return false, err
	}
	data, err := json.Marshal(map[string]any{"status": patch})
	if err != nil {
		return false, fmt.Errorf("encode the status: %w", err)
	}
	patched := v.cr.DeepCopy()
	err = r.Patcher.PatchStatus(ctx, patched, client.RawPatch(types.MergePatchType, data))
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case apierrors.IsInvalid(err) && v.fields.refuse():
		return r.report(ctx, v, d)
	case err != nil:
		return false, fmt.Errorf("patch the status: %w", err)
	}
	r.remember(ctx, v.key, patched)
	r.tellTransitions(v, d, now, wanted)
	return true, nil
}

// count tells the metrics how the custom resource is.
func (r *Reconciler) count(v *view, s api.Status) {
	counted := metrics.Release{
		NotReady: !meta.IsStatusConditionTrue(s.Conditions, api.ConditionReady),
		Held:     meta.IsStatusConditionTrue(s.Conditions, api.ConditionHeld),
		Paused:   meta.IsStatusConditionTrue(s.Conditions, api.ConditionPaused),
		Fought:   len(v.fighting) > 0,
	}
	if s.Release != nil {
		counted.Status = s.Release.Status
	}
	r.Metrics.SetRelease(r.kindName(), v.cr.GetUID(), counted)
}

// tellTransitions writes the events of those states that no action brings
// about; an action tells of itself.
func (r *Reconciler) tellTransitions(v *view, d plan.Decision, now, wanted api.Status) {
	before, after := now.Conditions, wanted.Conditions
	if d.State == plan.StateConflict || d.State == plan.StateInvalid {
		r.tellTransition(v, before, after, api.ConditionReady)
	}
	if r.Kind.DriftMode() == watches.DriftWarn {
		r.tellTransition(v, before, after, api.ConditionDrifted)
	}
	// What could be had instead may change, and is no news.
	if why := refused(v); why != "" && !strings.HasPrefix(message(before, api.ConditionRollbackRefused), why) {
		r.tellTransition(v, before, after, api.ConditionRollbackRefused)
	}
	r.tellTransition(v, before, after, api.ConditionInvalidAnnotations)
	r.tellTransition(v, before, after, api.ConditionUnwatched)
	r.tellReadiness(v, now, after)
	switch was, is := meta.IsStatusConditionTrue(before, api.ConditionPaused), meta.IsStatusConditionTrue(after, api.ConditionPaused); {
	case is && !was:
		r.emit(v, api.EventPaused, "Nothing is changed from now on")
	case was && !is:
		r.emit(v, api.EventUnpaused, "The pause is over")
	}
}

// tellReadiness tells when a release is ready that was not, and when it will not
// be without help.
func (r *Reconciler) tellReadiness(v *view, before api.Status, after []metav1.Condition) {
	is := meta.FindStatusCondition(after, api.ConditionReady)
	was := meta.FindStatusCondition(before.Conditions, api.ConditionReady)
	// Whatever else was the reason of late, such as the upgrade that helped.
	ailing := before.Resources != nil && len(before.Resources.NotReady) > 0
	if was == nil {
		was = &metav1.Condition{}
	}
	switch {
	case is.Reason == was.Reason:
	case is.Reason == api.ReasonProgressDeadlineExceeded, is.Reason == api.ReasonObjectFailed:
		r.Recorder.Event(v.cr, corev1.EventTypeWarning, is.Reason, cut(is.Message))
	case is.Status == metav1.ConditionTrue && was.Status != metav1.ConditionTrue && ailing:
		r.emit(v, api.EventReady, fmt.Sprintf("All objects of release %s are ready", v.release.Name))
	}
}

func (r *Reconciler) tellTransition(v *view, before, after []metav1.Condition, kind string) {
	is := meta.FindStatusCondition(after, kind)
	if was := meta.FindStatusCondition(before, kind); is == nil || was != nil && was.Reason == is.Reason && was.Message == is.Message {
		return
	}
	reason := is.Reason
	if kind != api.ConditionReady && kind != api.ConditionDrifted {
		reason = kind
	}
	r.Recorder.Event(v.cr, corev1.EventTypeWarning, reason, cut(is.Message))
}

// message is that of a condition, empty where there is none.
func message(conditions []metav1.Condition, kind string) string {
	if c := meta.FindStatusCondition(conditions, kind); c != nil {
		return c.Message
	}
	return ""
}

// difference returns the merge patch from one status to another, nil where
// they are equal. Every top-level field that differs is written whole.
func difference(from, to api.Status) (map[string]any, error) {
	before, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&from)
	if err != nil {
		return nil, fmt.Errorf("encode the status: %w", err)
	}
	after, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&to)
	if err != nil {
		return nil, fmt.Errorf("encode the status: %w", err)
	}
	patch := map[string]any{}
	for key := range before {
		if _, stays := after[key]; !stays {
			patch[key] = nil
		}
	}
	for key, value := range after {
		if !apiequality.Semantic.DeepEqual(before[key], value) {
			patch[key] = replace(before[key], value)
		}
	}
	if len(patch) == 0 {
		return nil, nil
	}
	return patch, nil
}
