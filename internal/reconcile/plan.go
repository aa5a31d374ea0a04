package reconcile

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chartwright/chartwright/internal/helm"
	"github.com/chartwright/chartwright/internal/inputs/valuesfrom"
	"github.com/chartwright/chartwright/internal/plan"
)

// Planned is what the operator would do about a custom resource.
type Planned struct {
	// State is the state of the custom resource, and Step the next step of the operator. If
	// the custom resource is paused, they are those without the pause.
	State  plan.State
	Step   plan.Step
	Paused bool

	Release types.NamespacedName
	// Chart is the digest of the chart that would be deployed, and BaseChart that of the
	// newest revision.
	Chart, BaseChart string
	// Action is what an install, an upgrade or a move would do; nil for every other step.
	Action *helm.Plan
	// Secrets are the secrets in the values. They must not be shown.
	Secrets valuesfrom.Secrets
}

// ErrInvalid marks a custom resource that the operator refuses.
var ErrInvalid = errors.New("invalid custom resource")

// PlanNext returns what Reconcile would do about a custom resource now. It does not write
// anything. The backoff after failures and the queue of a rollout are not taken into account.
//
// The error wraps ErrInvalid if the operator would refuse the custom resource. Otherwise it
// is that of the upgrade, as text without secrets.
func (r *Reconciler) PlanNext(ctx context.Context, planner *helm.Client, cr *unstructured.Unstructured) (*Planned, error) {
	v, err := r.observe(ctx, client.ObjectKeyFromObject(cr), cr)
	if err != nil {
		return nil, err
	}
	if problem := v.Observation.Invalid; problem != nil {
		return nil, fmt.Errorf("%w: %s: %s", ErrInvalid, problem.Reason, v.Redact(problem.Message))
	}
	o := v.Observation
	// The operator adds it before the action.
	o.Finalizer, o.Former = true, false
	d := plan.Next(o)
	planned := &Planned{State: d.State, Step: d.Step, Release: v.Release, Secrets: v.Secrets, Chart: v.digests.Chart}
	if d.State == plan.StatePaused {
		planned.State, planned.Step, planned.Paused = d.Pending.State, d.Pending.Step, true
		d = plan.Decision{State: d.Pending.State, Step: d.Pending.Step}
	}
	if len(v.History) > 0 {
		planned.BaseChart = v.History[0].ChartDigest
	}
	act := planner.PlanUpgrade
	switch {
	case d.State == plan.StateMoving:
		act = planner.PlanMove
	case d.Step != plan.StepInstall && d.Step != plan.StepUpgrade:
		return planned, nil
	}
	request := r.request(v, d, helm.NoOp{})
	if request.Values, err = r.valuesOf(ctx, v); err != nil {
		return nil, err
	}
	planned.Action, err = act(ctx, request)
	if redactor, ok := request.Redactor.(*redactor); ok {
		planned.Secrets = redactor.known()
	}
	if err != nil {
		return nil, errors.New(planned.Secrets.RedactParts(err.Error(), v.Authored))
	}
	return planned, nil
}
