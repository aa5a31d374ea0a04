package reconcile

import (
	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/plan"
)

// answered repeats the requests that stand in annotations and were answered,
// nil where there is none. The records know those that were met or refused. A
// try that failed is known by its aim, which differs from request to request;
// it may have stored nothing.
func answered(v *view, d plan.Decision) *api.AnsweredStatus {
	o := v.observation
	failed := v.failure != nil && v.failure.Aim == plan.Aim(o)
	// What cannot be followed is not tried; what runs was verified before.
	verified := failed || d.State == plan.StateInvalid ||
		v.repairFailure != nil && v.repairFailure.Aim == plan.AimOf(plan.StepVerify, o)
	// The end of a hold is stored before anybody asks what follows from it.
	resuming := o.Running != nil && o.Running.Step == plan.StepResume
	var a api.AnsweredStatus
	for _, request := range []struct {
		value, mark string
		tried       bool
		to          *string
	}{
		{rollbackValue(v, resuming), v.marks.Rollback, failed && o.Request != nil, &a.RollbackTo},
		{v.asks.Reconcile, v.marks.Reconcile, verified, &a.ReconcileRequestedAt},
		{v.asks.Force, v.marks.Force, verified, &a.Force},
		{v.asks.Test, v.marks.Test, false, &a.Test},
	} {
		if request.value != "" && (request.tried || !unanswered(request.value, request.mark)) {
			*request.to = request.value
		}
	}
	if a == (api.AnsweredStatus{}) {
		return nil
	}
	return &a
}

// rollbackValue is the annotation rollback-to, empty where there is no answer to
// be told of yet. One that cannot be understood waits for none.
func rollbackValue(v *view, resuming bool) string {
	if v.asks.Rollback == nil || v.asks.Rollback.Malformed() || v.asks.Rollback.None && resuming {
		return ""
	}
	return v.asks.Rollback.Value
}
