package gitops

import (
	"context"
	"fmt"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// HealthCheck is an entry of healthCheckExprs in a Kustomization of Flux.
type HealthCheck struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	InProgress string `json:"inProgress,omitempty"`
	Failed     string `json:"failed,omitempty"`
	Current    string `json:"current"`
}

// Evaluate returns the health of an object. Flux waits if it returns an error,
// as for an object in progress.
func (c HealthCheck) Evaluate(ctx context.Context, object *unstructured.Unstructured) (status.Status, error) {
	observed, found, err := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	if err != nil {
		return status.UnknownStatus, fmt.Errorf("read status.observedGeneration: %w", err)
	}
	if found && observed != object.GetGeneration() {
		return status.InProgressStatus, nil
	}
	for _, check := range []struct {
		expression string
		means      status.Status
	}{{c.InProgress, status.InProgressStatus}, {c.Failed, status.FailedStatus}, {c.Current, status.CurrentStatus}} {
		if check.expression == "" {
			continue
		}
		holds, err := holds(ctx, check.expression, object.Object)
		if err != nil {
			return status.UnknownStatus, err
		}
		if holds {
			return check.means, nil
		}
	}
	return status.InProgressStatus, nil
}

// holds evaluates an expression with the fields of an object. Flux parses it
// without a type check, because it knows no types.
func holds(ctx context.Context, expression string, object map[string]any) (bool, error) {
	env, err := cel.NewEnv(
		cel.HomogeneousAggregateLiterals(), cel.EagerlyValidateDeclarations(true), cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true), cel.OptionalTypes(), ext.Strings(), ext.Sets(), ext.Encoders(),
	)
	if err != nil {
		return false, fmt.Errorf("create a CEL environment: %w", err)
	}
	parsed, issues := env.Parse(expression)
	if issues.Err() != nil {
		return false, fmt.Errorf("parse %q: %w", expression, issues.Err())
	}
	program, err := env.Program(parsed, cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		return false, fmt.Errorf("compile %q: %w", expression, err)
	}
	value, _, err := program.ContextEval(ctx, object)
	if err != nil {
		return false, fmt.Errorf("evaluate %q: %w", expression, err)
	}
	answer, ok := value.(types.Bool)
	if !ok {
		return false, fmt.Errorf("%q is a %s, not a bool", expression, value.Type())
	}
	return bool(answer), nil
}
