package reconcile

import (
	"context"
	"slices"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/plan"
)

// racing is a Patcher with another client, which writes before the first patch of the status.
type racing struct {
	*memoryAPI
	write func()
}

func (r *racing) PatchStatus(ctx context.Context, cr *unstructured.Unstructured, patch client.Patch) error {
	r.write()
	return r.memoryAPI.PatchStatus(ctx, cr, patch)
}

// TestReport_KeepsConditionsOfOthers: another controller adds a condition while the status is
// computed. The patch of the status does not remove it, and the next reconciliation writes
// both.
func TestReport_KeepsConditionsOfOthers(t *testing.T) {
	w := newWorld(t)
	w.stored(1, api.StatusDeployed)
	w.applied()
	w.apiServer.written(&unstructured.Unstructured{})
	w.Patcher = &racing{w.apiServer, sync.OnceFunc(func() {
		scanned := map[string]any{"type": "ScanDone", "status": "True", "reason": "Scanned", "message": "", "lastTransitionTime": "2026-05-06T07:08:09Z"}
		w.apiServer.cr.Object["status"] = map[string]any{"conditions": []any{scanned}}
		w.apiServer.written(&unstructured.Unstructured{})
	})}
	w.expect([]plan.State{plan.StateInSync}, "", []string{api.Finalizer}, settle)
	w.expect([]plan.State{plan.StateInSync}, "True Deployed", []string{api.Finalizer}, 0)
	conditions, _, _ := unstructured.NestedSlice(w.apiServer.cr.Object, "status", "conditions")
	if !slices.ContainsFunc(conditions, func(c any) bool { return c.(map[string]any)["type"] == "ScanDone" }) {
		t.Errorf("the condition of the other controller is gone: %v", conditions)
	}
}
