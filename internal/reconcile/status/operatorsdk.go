package status

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
)

// keepUp keeps up the conditions of the operator-sdk's Helm operator on a custom
// resource that it has served, for whoever reads them. Others get none of them.
//
// That operator has ReleaseFailed and Irreconcilable there only while they are
// True; the one of helm-operator-plugins has them there always. Which it was is
// seen by one that is there and not True.
//
// In damage is why a repair has failed, empty where none has.
func keepUp(conditions *[]metav1.Condition, generation int64, ready summary, installed bool, damage string) {
	if meta.FindStatusCondition(*conditions, api.ConditionInitialized) == nil {
		return
	}
	always := false
	for _, kind := range []string{api.ConditionReleaseFailed, api.ConditionIrreconcilable} {
		c := meta.FindStatusCondition(*conditions, kind)
		always = always || c != nil && c.Status != metav1.ConditionTrue
	}
	set := func(kind string, state metav1.ConditionStatus, reason, message string) {
		meta.SetStatusCondition(conditions, metav1.Condition{
			Type: kind, Status: state, Reason: reason, Message: CutTo(message, maxCondition), ObservedGeneration: generation,
		})
	}
	set(api.ConditionInitialized, metav1.ConditionTrue, "", "")
	message := ready.message
	failed, reason := trouble(ready, installed)
	if failed == "" && damage != "" {
		failed, reason, message = api.ConditionIrreconcilable, api.ReasonReconcileError, damage
	}
	for _, kind := range []string{api.ConditionReleaseFailed, api.ConditionIrreconcilable} {
		switch {
		case kind == failed:
			set(kind, metav1.ConditionTrue, reason, message)
		case always:
			set(kind, metav1.ConditionFalse, "", "")
		default:
			meta.RemoveStatusCondition(conditions, kind)
		}
	}
}

// trouble returns which of the two conditions holds, and its reason; none where
// nothing has failed. To that operator the first install fails for whatever
// reason, and later what cannot be rendered is irreconcilable.
func trouble(ready summary, installed bool) (kind, reason string) {
	changing := api.ReasonUpgradeError
	if !installed {
		changing = api.ReasonInstallError
	}
	switch ready.reason {
	case api.ReasonInstallFailed, api.ReasonUpgradeFailed, api.ReasonRollbackFailed, api.ReasonRefused, api.ReasonObjectConflict, api.ReasonTooLarge:
		return api.ConditionReleaseFailed, changing
	case api.ReasonUninstallFailed:
		return api.ConditionReleaseFailed, api.ReasonUninstallError
	case api.ReasonAdoptionFailed, api.ReasonNameConflict:
		return api.ConditionIrreconcilable, api.ReasonReconcileError
	}
	switch {
	case !ready.stalled || ready.serves:
		return "", ""
	case installed:
		return api.ConditionIrreconcilable, api.ReasonReconcileError
	default:
		return api.ConditionReleaseFailed, api.ReasonInstallError
	}
}
