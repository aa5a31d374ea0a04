package reconcile

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/helm"
	"github.com/chartwright/chartwright/internal/plan"
)

// reportRepairs counts repairs and tells of them, in one event.
func (r *Reconciler) reportRepairs(v *view, repaired []helm.Repaired) {
	if len(repaired) == 0 {
		return
	}
	kind := r.kindName()
	texts := make([]string, len(repaired))
	for i, one := range repaired {
		texts[i] = one.String()
		r.Metrics.DriftCorrected(kind, one.GroupKind().String())
		if r.fights.repaired(v.cr.GetUID(), one.Key, r.Now()) {
			r.Recorder.Eventf(v.cr, corev1.EventTypeWarning, api.EventDriftFight,
				"%s was damaged %d times within %s: it is repaired ever more slowly; find out who changes it", one.Key, fightRepairs, fightWindow)
		}
	}
	r.emit(v, api.EventDriftCorrected, cut("Repaired "+strings.Join(texts, "; ")))
}

// drifted says what the condition Drifted tells, and false where it is not
// True.
func drifted(v *view) (reason, message string, holds bool) {
	if f := v.repairFailure; f != nil && f.Aim == plan.AimOf(plan.StepRepair, v.observation) && (len(v.drift) > 0 || v.observation.Unverified) {
		return f.reason, f.message, true
	}
	if len(v.fighting) > 0 {
		names := make([]string, len(v.fighting))
		for i, key := range v.fighting {
			names[i] = key.String()
		}
		return api.ReasonDriftFight, cut(fmt.Sprintf("Somebody damages these again and again, and they are repaired ever more slowly: %s", strings.Join(names, ", "))), true
	}
	if len(v.drift) == 0 {
		return "", "", false
	}
	names := make([]string, len(v.drift))
	for i, drift := range v.drift {
		names[i] = drift.String()
		if drift.Gone {
			names[i] += " (gone)"
		}
	}
	return api.ReasonDriftDetected, cut("Not as the release says: " + strings.Join(names, ", ")), true
}
