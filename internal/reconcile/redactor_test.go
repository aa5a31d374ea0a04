package reconcile

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/inputs/valuesfrom"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/reconcile/status"
)

// TestRedactor_StoredValuesOutsideTheSpecAreSecret: if values come from valuesFrom, an
// action on a stored revision redacts values that are not in the spec.
func TestRedactor_StoredValuesOutsideTheSpecAreSecret(t *testing.T) {
	stored := map[string]any{"image": "nginx", "zone": "north", "password": "canary", "port": float64(7654321)}
	const said = "nginx north canary 7654321 known"
	for name, test := range map[string]struct {
		step    plan.Step
		sources []catalog.Source
		want    string
	}{
		"an uninstall":                {plan.StepUninstall, make([]catalog.Source, 1), "nginx north [redacted] [redacted] [redacted]"},
		"a repair":                    {plan.StepRepair, make([]catalog.Source, 1), "nginx north [redacted] [redacted] [redacted]"},
		"an upgrade, of new values":   {plan.StepUpgrade, make([]catalog.Source, 1), "nginx north canary 7654321 [redacted]"},
		"values of the spec, no more": {plan.StepUninstall, nil, "nginx north canary 7654321 [redacted]"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Reconciler{Kind: catalog.Kind{Sources: test.sources, Overrides: map[string]any{"zone": "north"}}}
			v := &snapshot{Snapshot: status.Snapshot{CR: &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"image": "nginx"}}}, Secrets: valuesfrom.Secrets{"known"}}}
			hide := r.redactorFor(v, test.step)
			hide.AddStoredValues(stored)
			if got := hide.Redact(said); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}
