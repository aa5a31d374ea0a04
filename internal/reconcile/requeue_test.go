package reconcile

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/inventory"
	"github.com/chartwright/chartwright/internal/metrics"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/reconcile/queue"
	"github.com/chartwright/chartwright/internal/reconcile/status"
)

// TestReconcile_RequeuesNotForADelayedDiagnosis: if another state delays a due
// diagnosis, the end of that state causes the next reconciliation, and not the clock.
func TestReconcile_RequeuesNotForADelayedDiagnosis(t *testing.T) {
	now := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	failed := func(v *snapshot) {
		withFailure(ofSpec, api.EventUpgradeFailed, false)(v)
		v.Failure.Attempts, v.Failure.At = 9, now
		v.Observation.Newest.Digest = "older"
	}
	invalid := observed(func(o *plan.Observation) { o.Invalid = &plan.Problem{Reason: api.ReasonInvalidValues, Message: "why"} })
	for _, test := range []struct {
		name           string
		change         func(*snapshot)
		look, deadline time.Duration
		state          plan.State
		want           time.Duration
	}{
		{"before the diagnosis", observed(isPaused), 5 * time.Second, time.Minute, plan.StatePaused, 5 * time.Second},
		{"before the deadline", observed(isPaused), 5 * time.Second, 2 * time.Second, plan.StatePaused, 2 * time.Second},
		{"paused", observed(isPaused), -time.Second, time.Minute, plan.StatePaused, time.Minute},
		{"paused, overdue", observed(isPaused), -time.Second, -time.Second, plan.StatePaused, 0},
		{"paused, due now", observed(isPaused), 0, 0, plan.StatePaused, 0},
		{"invalid", invalid, -time.Second, -time.Second, plan.StateInvalid, 0},
		{"failed", failed, -time.Second, -time.Second, plan.StateFailed, 256 * time.Second},
		{"busy", runningStep(plan.StepDiagnose), -time.Second, -time.Second, plan.StateBusy, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := viewOf([]string{dep}, func(v *snapshot) {
				v.Observation.Now = now
				v.Health.Unready = []inventory.ObjectHealth{{}}
				v.Health.Total = 1
				v.Overdue = test.deadline <= 0
				v.Observation.NeedsDiagnosis = test.look <= 0
			}, test.change)
			counted := metrics.New(nil, metrics.Sources{})
			r := &Reconciler{Shared: Shared{Metrics: counted, Pool: queue.NewPool(1, false, time.Now, counted), Now: func() time.Time { return now }}}
			v.progress = progress{since: now.Add(test.deadline - r.Kind.ReadyWithin()), diagnoseAt: now.Add(test.look)}
			d := plan.Next(v.Observation)
			if d.State != test.state || d.Step != plan.StepWait {
				t.Fatalf("%+v, expected it to wait as %s", d, test.state)
			}
			v.CR.Object["status"] = asMap(t, status.Compute(&v.Snapshot, d, nil))
			result, err := r.finish(t.Context(), v, d)
			if err != nil || result.RequeueAfter != test.want {
				t.Errorf("RequeueAfter %s (%v), want %s", result.RequeueAfter, err, test.want)
			}
		})
	}
}

// asMap returns a status as the API server returns it.
func asMap(t *testing.T, s api.Status) (read map[string]any) {
	t.Helper()
	text, err := json.Marshal(s)
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	if err != nil {
		t.Fatal(err)
	}
	return read
}
