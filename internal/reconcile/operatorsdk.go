package reconcile

import (
	"strings"

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
			Type: kind, Status: state, Reason: reason, Message: cutTo(message, maxCondition), ObservedGeneration: generation,
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

// dropManifest adds to the patch of a status that what the operator-sdk has put
// beside the name of the deployed release goes: the manifest, in which secrets
// may be.
func dropManifest(patch map[string]any, stands any) map[string]any {
	if text, packed := stands.(string); packed && !strings.Contains(text, `"manifest"`) {
		// Nothing needs to be read for those that have none.
		return patch
	}
	deployed, _ := statusFields(stands)["deployedRelease"].(map[string]any)
	if _, there := deployed["manifest"]; !there {
		return patch
	}
	if patch == nil {
		patch = map[string]any{}
	}
	is, written := patch["deployedRelease"]
	wanted, stays := is.(map[string]any)
	switch {
	case !written:
		patch["deployedRelease"] = map[string]any{"manifest": nil}
	case stays:
		wanted["manifest"] = nil
	}
	return patch
}
