package reconcile

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/reconcile/status"
)

// racing is Resources with another client, which writes before the first patch of the status.
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
	w.Resources = &racing{w.apiServer, sync.OnceFunc(func() {
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

// unserved is Resources of an API server that answers with a 404 page, as for a path that it
// does not serve.
type unserved struct {
	*memoryAPI
	status, finalizers int
}

func notServed(name string) error {
	return apierrors.NewGenericServerResponse(http.StatusNotFound, "PATCH", schema.GroupResource{Resource: "webs"}, name, "404 page not found", 0, true)
}

func (u *unserved) PatchStatus(ctx context.Context, cr *unstructured.Unstructured, patch client.Patch) error {
	if u.status > 0 {
		u.status--
		return notServed(cr.GetName())
	}
	return u.memoryAPI.PatchStatus(ctx, cr, patch)
}

func (u *unserved) Patch(ctx context.Context, cr *unstructured.Unstructured, patch client.Patch) error {
	if u.finalizers > 0 {
		u.finalizers--
		return notServed(cr.GetName())
	}
	return u.memoryAPI.Patch(ctx, cr, patch)
}

// TestReport_RepeatsPatchAfterUnservedPath: a 404 that does not name the custom resource fails
// the reconciliation, and the next one writes the finalizer and the status.
func TestReport_RepeatsPatchAfterUnservedPath(t *testing.T) {
	for name, at := range map[string]unserved{"status": {status: 1}, "finalizers": {finalizers: 1}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.stored(1, api.StatusDeployed)
			w.applied()
			if at.finalizers > 0 {
				w.apiServer.cr.SetFinalizers(nil)
			}
			at.memoryAPI = w.apiServer
			w.Resources = &at
			if _, err := w.Reconcile(t.Context(), ctrl.Request{NamespacedName: webKey}); err == nil || !strings.Contains(err.Error(), "patch the "+name) {
				t.Errorf("error %v", err)
			}
			w.reconcile()
			if ready := w.ready(); ready != "True Deployed" || !slices.Contains(w.apiServer.cr.GetFinalizers(), api.Finalizer) {
				t.Errorf("condition Ready is %q, finalizers are %v", ready, w.apiServer.cr.GetFinalizers())
			}
		})
	}
}

// TestReport_ReadyEventAfterUpgrade: an event reports that an unready release became ready, whether
// its objects became ready before or after the end of the upgrade that fixed them. Another upgrade
// has no such event.
func TestReport_ReadyEventAfterUpgrade(t *testing.T) {
	state := func(status metav1.ConditionStatus, reason string, unready int) api.Status {
		s := api.Status{Conditions: []metav1.Condition{{Type: api.ConditionReady, Status: status, Reason: reason}}, Resources: &api.ResourcesStatus{Total: 1}}
		s.Resources.NotReady = make([]api.ObjectStatus, unready)
		return s
	}
	for name, test := range map[string]struct {
		// before, begin and end count the unready objects before and during the upgrade.
		before, begin, end int
		want               int
	}{
		"ready before the end": {1, 1, 0, 1},
		"ready after the end":  {1, 1, 1, 1},
		"never unready":        {0, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			v := &snapshot{Snapshot: status.Snapshot{CR: w.apiServer.cr}}
			reports := []api.Status{
				state(metav1.ConditionFalse, api.ReasonProgressing, test.before),
				state(metav1.ConditionFalse, api.ReasonUpgrading, test.begin),
				state(metav1.ConditionFalse, api.ReasonUpgrading, test.end),
				state(metav1.ConditionTrue, api.ReasonDeployed, 0),
				state(metav1.ConditionFalse, api.ReasonUpgrading, 0),
				state(metav1.ConditionTrue, api.ReasonDeployed, 0),
			}
			for i := range reports[1:] {
				w.emitReadiness(v, reports[i], reports[i+1].Conditions)
			}
			if events := w.events(); len(events) != test.want || test.want > 0 && events[0] != "Normal "+api.EventReady {
				t.Errorf("events are %v", events)
			}
		})
	}
}
