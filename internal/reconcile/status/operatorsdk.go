package status

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
)

// setOperatorSDKConditions updates the conditions of the operator-sdk's Helm operator on
// a custom resource that has them, for clients that read them. It adds them to no other
// custom resource.
//
// That operator sets ReleaseFailed and Irreconcilable only while they are True, while
// helm-operator-plugins always sets them. A condition that is not True shows that the
// latter has set it.
//
// repairFailure is why the last drift correction failed, empty if it succeeded.
func setOperatorSDKConditions(conditions *[]metav1.Condition, generation int64, ready summary, installed bool, repairFailure string) {
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
			Type: kind, Status: state, Reason: reason, Message: api.Truncate(message, maxCondition), ObservedGeneration: generation,
		})
	}
	set(api.ConditionInitialized, metav1.ConditionTrue, "", "")
	message := ready.message
	failed, reason := failedCondition(ready, installed)
	if failed == "" && repairFailure != "" {
		failed, reason, message = api.ConditionIrreconcilable, api.ReasonReconcileError, repairFailure
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

// failedCondition returns which of the two conditions is True, and its reason; empty if
// nothing has failed. As in that operator, every failure of the first install is
// ReleaseFailed, and a later rendering failure is Irreconcilable.
func failedCondition(ready summary, installed bool) (kind, reason string) {
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
